// A checkpoint shaped like Kimi-Linear (spec 11.1): flat config, no prefix, softplus gate, low-rank
// output gate, one q_proj, plain residual, BF16 experts at full width. Names are spelled out here.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/checkpoint.h"
#include "format/safetensors_writer.h"
#include "io/temp_directory.h"

namespace sluice {
namespace {

constexpr const char* kConfig = R"({
  "model_type": "kimi_linear", "hidden_size": 48, "num_hidden_layers": 4, "vocab_size": 80,
  "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": null, "kv_lora_rank": 16,
  "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "mla_use_nope": true,
  "intermediate_size": 96, "num_experts": 4, "num_experts_per_token": 2, "num_shared_experts": 1,
  "moe_intermediate_size": 20, "moe_router_activation_func": "sigmoid", "moe_renormalize": true,
  "routed_scaling_factor": 2.446, "first_k_dense_replace": 1, "hidden_act": "silu",
  "rms_norm_eps": 1e-5, "model_max_length": 4096, "eos_token_id": 7, "rope_theta": 10000.0,
  "head_dim": 72,
  "linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4], "head_dim": 8,
                         "num_heads": 3, "short_conv_kernel_size": 4}})";

void add_kda(std::vector<TestTensor>& out, const std::string& p) {
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    out.push_back({p + name + ".weight", "BF16", {24, 48}});
  }
  out.push_back({p + "g_a_proj.weight", "BF16", {8, 48}});
  out.push_back({p + "g_b_proj.weight", "BF16", {24, 8}});
  out.push_back({p + "f_a_proj.weight", "BF16", {8, 48}});
  out.push_back({p + "f_b_proj.weight", "BF16", {24, 8}});
  out.push_back({p + "b_proj.weight", "BF16", {3, 48}});
  out.push_back({p + "o_proj.weight", "BF16", {48, 24}});
  out.push_back({p + "A_log", "F32", {1, 1, 3, 1}});
  out.push_back({p + "dt_bias", "F32", {24}});
  for (const char* name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    out.push_back({p + name + ".weight", "BF16", {24, 1, 4}});
  }
  out.push_back({p + "o_norm.weight", "BF16", {8}});
}

void add_mla(std::vector<TestTensor>& out, const std::string& p) {
  out.push_back({p + "q_proj.weight", "BF16", {24, 48}});
  out.push_back({p + "kv_a_proj_with_mqa.weight", "BF16", {20, 48}});
  out.push_back({p + "kv_a_layernorm.weight", "BF16", {16}});
  out.push_back({p + "kv_b_proj.weight", "BF16", {28, 16}});
  out.push_back({p + "o_proj.weight", "BF16", {48, 12}});
}

void add_mlp(std::vector<TestTensor>& out, const std::string& p, int64_t width) {
  out.push_back({p + "gate_proj.weight", "BF16", {width, 48}});
  out.push_back({p + "up_proj.weight", "BF16", {width, 48}});
  out.push_back({p + "down_proj.weight", "BF16", {48, width}});
}

void add_moe(std::vector<TestTensor>& out, const std::string& p) {
  out.push_back({p + "gate.weight", "BF16", {4, 48}});
  out.push_back({p + "gate.e_score_correction_bias", "F32", {4}});
  add_mlp(out, p + "shared_experts.", 20);
  for (int expert = 3; expert >= 0; --expert) {
    const std::string e = p + "experts." + std::to_string(expert) + ".";
    out.push_back({e + "w1.weight", "BF16", {20, 48}});
    out.push_back({e + "w2.weight", "BF16", {48, 20}});
    out.push_back({e + "w3.weight", "BF16", {20, 48}});
  }
}

std::vector<TestTensor> kimi_linear() {
  std::vector<TestTensor> out = {{"lm_head.weight", "BF16", {80, 48}},
                                 {"model.embed_tokens.weight", "BF16", {80, 48}},
                                 {"model.norm.weight", "BF16", {48}}};
  for (int layer = 0; layer < 4; ++layer) {
    const std::string p = "model.layers." + std::to_string(layer) + ".";
    out.push_back({p + "input_layernorm.weight", "BF16", {48}});
    out.push_back({p + "post_attention_layernorm.weight", "BF16", {48}});
    layer < 3 ? add_kda(out, p + "self_attn.") : add_mla(out, p + "self_attn.");
    layer == 0 ? add_mlp(out, p + "mlp.", 96) : add_moe(out, p + "block_sparse_moe.");
  }
  return out;
}

Result<Checkpoint> open_written(const TempDirectory& directory,
                                const std::vector<TestTensor>& tensors) {
  write_file(directory.path() / "config.json", kConfig);
  write_safetensors(directory.path() / "model.safetensors", tensors);
  return Checkpoint::open(directory.path(), Direct::kAuto);
}

TEST(KimiLinear, EveryTensorIsBound) {
  const TempDirectory directory;
  const std::vector<TestTensor> tensors = kimi_linear();
  const Result<Checkpoint> opened = open_written(directory, tensors);
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  const Checkpoint& c = opened.value();
  EXPECT_EQ(c.n_tensors(), static_cast<int64_t>(tensors.size()));
  EXPECT_EQ(c.n_unclaimed(), 0);
  EXPECT_EQ(c.config().max_positions, 4096);
  EXPECT_EQ(c.config().moe.routed_scaling_factor, 2.446f);
  EXPECT_EQ(c.tensor(LayerId{3}, Role::kQProj).rows, 24);
  EXPECT_FALSE(c.tensor(LayerId{3}, Role::kQAProj).present());
  EXPECT_FALSE(c.tensor(LayerId{3}, Role::kGProj).present());
  EXPECT_EQ(c.tensor(LayerId{0}, Role::kGAProj).rows, 8);
  EXPECT_EQ(c.tensor(LayerId{0}, Role::kGBProj).cols, 8);
  EXPECT_FALSE(c.tensor(LayerId{0}, Role::kGProj).present());
  EXPECT_FALSE(c.tensor(LayerId{1}, Role::kMlpResNorm).present());
  EXPECT_FALSE(c.tensor(LayerId{1}, Role::kRoutedExpertDownProj).present());
  EXPECT_FALSE(c.global(Role::kOutputAttnResNorm).present());
  EXPECT_EQ(c.tensor(LayerId{1}, Role::kQConv).dtype, Dtype::kBf16);
  EXPECT_EQ(c.tensor(LayerId{1}, Role::kQConv).cols, 4);
  EXPECT_EQ(c.tensor(LayerId{1}, Role::kALog).cols, 3);
}

TEST(KimiLinear, ExpertsAreBf16RecordsAtFullWidth) {
  const TempDirectory directory;
  const Result<Checkpoint> opened = open_written(directory, kimi_linear());
  ASSERT_TRUE(opened.ok()) << opened.error().what;
  const ExpertLayout& layout = opened.value().expert_layout();
  EXPECT_EQ(layout.format, ExpertFormat::kBf16);
  EXPECT_EQ(layout.record_bytes, 3u * 20 * 48 * 2);
  const auto offset = [&](ExpertPiece piece) {
    return layout.piece_offset[static_cast<size_t>(piece)];
  };
  EXPECT_EQ(offset(ExpertPiece::kW1), 0u);
  EXPECT_EQ(offset(ExpertPiece::kW2), 1920u);
  EXPECT_EQ(offset(ExpertPiece::kW3), 3840u);
  const uint64_t first = opened.value().expert({LayerId{1}, ExpertId{0}}).offset;
  EXPECT_EQ(opened.value().expert({LayerId{1}, ExpertId{3}}).offset,
            first - 3 * layout.record_bytes);
}

TEST(KimiLinear, EachAbsentTensorIsNamed) {
  const std::vector<TestTensor> tensors = kimi_linear();
  for (size_t absent = 0; absent < tensors.size(); ++absent) {
    std::vector<TestTensor> rest = tensors;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(absent));
    const TempDirectory directory;
    const Result<Checkpoint> opened = open_written(directory, rest);
    ASSERT_FALSE(opened.ok()) << tensors[absent].name;
    EXPECT_EQ(opened.error().code, Code::kCorrupt);
    EXPECT_NE(opened.error().what.find("\"" + tensors[absent].name + "\""), std::string::npos)
        << opened.error().what;
  }
}

TEST(KimiLinear, TheRightCountOfElementsInTheWrongShapeIsRefused) {
  const std::vector<TestTensor> tensors = kimi_linear();
  for (size_t changed = 0; changed < tensors.size(); ++changed) {
    if (tensors[changed].name.ends_with("A_log")) continue;  // any shape of enough elements
    std::vector<TestTensor> damaged = tensors;
    damaged[changed].shape.push_back(1);
    const TempDirectory directory;
    const Result<Checkpoint> opened = open_written(directory, damaged);
    ASSERT_FALSE(opened.ok()) << tensors[changed].name;
    EXPECT_NE(opened.error().what.find("\"" + tensors[changed].name + "\" has shape"),
              std::string::npos)
        << opened.error().what;
  }
}

TEST(KimiLinear, AnExpertCutByShardsIsUnsupported) {
  const TempDirectory directory;
  std::vector<TestTensor> first = kimi_linear();
  const TestTensor last = first.back();  // w3 of an expert
  first.pop_back();
  write_file(directory.path() / "config.json", kConfig);
  write_safetensors(directory.path() / "a.safetensors", first);
  write_safetensors(directory.path() / "b.safetensors", {last});
  Json index = Json::object();
  for (const TestTensor& tensor : first) index["weight_map"][tensor.name] = "a.safetensors";
  index["weight_map"][last.name] = "b.safetensors";
  write_file(directory.path() / "model.safetensors.index.json", dump_json(index));
  const Result<Checkpoint> opened = Checkpoint::open(directory.path(), Direct::kAuto);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kUnsupported);
  EXPECT_NE(opened.error().what.find(last.name), std::string::npos) << opened.error().what;
}

}  // namespace
}  // namespace sluice
