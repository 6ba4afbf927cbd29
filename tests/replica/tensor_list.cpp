#include "replica/tensor_list.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace sluice::replica {
namespace {

constexpr int64_t kHidden = 7168;
constexpr int64_t kVocab = 163840;
constexpr int64_t kWidth = 12288;  // 96 heads of 128
constexpr int64_t kLatent = 3584;
constexpr int64_t kInner = 3072;   // of a routed expert
constexpr int64_t kShared = 6144;  // both shared experts as one
constexpr int64_t kDense = 33792;

constexpr int kFirstMoeShard = 2;
constexpr int kGlobalShard = 94;
constexpr int kProjectorShard = 95;
constexpr int kVisionShard = 96;
constexpr int kVisionBlocks = 27;

using Tensors = std::vector<Tensor>;

uint64_t element_bytes(const std::string& dtype) {
  return dtype == "F32" ? 4 : dtype == "BF16" ? 2 : 1;
}

// Adds tensors whose names share a prefix.
class Adder {
 public:
  Adder(Tensors& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  void bf16(const std::string& name, std::vector<int64_t> shape) {
    out_.push_back({prefix_ + name, "BF16", std::move(shape)});
  }
  void f32(const std::string& name, std::vector<int64_t> shape) {
    out_.push_back({prefix_ + name, "F32", std::move(shape)});
  }
  void u8(const std::string& name, std::vector<int64_t> shape) {
    out_.push_back({prefix_ + name, "U8", std::move(shape)});
  }

 private:
  Tensors& out_;
  std::string prefix_;
};

void add_norms(Adder& add) {
  for (const char* name :
       {"input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm"}) {
    add.bf16(std::string(name) + ".weight", {kHidden});
  }
  add.bf16("self_attention_res_proj.weight", {1, kHidden});
  add.bf16("mlp_res_proj.weight", {1, kHidden});
}

void add_kda(Adder& add) {
  for (const char* name : {"q_proj", "k_proj", "v_proj", "g_proj"}) {
    add.bf16("self_attn." + std::string(name) + ".weight", {kWidth, kHidden});
  }
  add.bf16("self_attn.o_proj.weight", {kHidden, kWidth});
  add.bf16("self_attn.f_a_proj.weight", {128, kHidden});
  add.bf16("self_attn.f_b_proj.weight", {kWidth, 128});
  add.bf16("self_attn.b_proj.weight", {96, kHidden});
  add.f32("self_attn.A_log", {128});
  add.f32("self_attn.dt_bias", {kWidth});
  for (const char* name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    add.f32("self_attn." + std::string(name) + ".weight", {kWidth, 1, 4});
  }
  add.f32("self_attn.o_norm.weight", {128});
}

void add_mla(Adder& add) {
  add.bf16("self_attn.q_a_proj.weight", {1536, kHidden});
  add.bf16("self_attn.q_a_layernorm.weight", {1536});
  add.bf16("self_attn.q_b_proj.weight", {18432, 1536});
  add.bf16("self_attn.kv_a_proj_with_mqa.weight", {576, kHidden});
  add.bf16("self_attn.kv_a_layernorm.weight", {512});
  add.bf16("self_attn.kv_b_proj.weight", {24576, 512});
  add.bf16("self_attn.g_proj.weight", {kWidth, kHidden});
  add.bf16("self_attn.o_proj.weight", {kHidden, kWidth});
}

void add_moe(Adder& add) {
  add.bf16("block_sparse_moe.gate.weight", {kExperts, kHidden});
  add.f32("block_sparse_moe.gate.e_score_correction_bias", {kExperts});
  add.bf16("block_sparse_moe.routed_expert_down_proj.weight", {kLatent, kHidden});
  add.bf16("block_sparse_moe.routed_expert_norm.weight", {kLatent});
  add.bf16("block_sparse_moe.routed_expert_up_proj.weight", {kHidden, kLatent});
  add.bf16("block_sparse_moe.shared_experts.gate_proj.weight", {kShared, kHidden});
  add.bf16("block_sparse_moe.shared_experts.up_proj.weight", {kShared, kHidden});
  add.bf16("block_sparse_moe.shared_experts.down_proj.weight", {kHidden, kShared});
  for (int expert = 0; expert < kExperts; ++expert) {
    const std::string name = "block_sparse_moe.experts." + std::to_string(expert);
    for (const char* up : {".w1", ".w3"}) {
      add.u8(name + up + ".weight_packed", {kInner, kLatent / 2});
      add.u8(name + up + ".weight_scale", {kInner, kLatent / 32});
    }
    add.u8(name + ".w2.weight_packed", {kLatent, kInner / 2});
    add.u8(name + ".w2.weight_scale", {kLatent, kInner / 32});
  }
}

void add_layer(Tensors& out, int layer) {
  Adder add(out, "language_model.model.layers." + std::to_string(layer) + ".");
  add_norms(add);
  is_mla(layer) ? add_mla(add) : add_kda(add);
  if (layer > 0) {
    add_moe(add);
    return;
  }
  add.bf16("mlp.gate_proj.weight", {kDense, kHidden});
  add.bf16("mlp.up_proj.weight", {kDense, kHidden});
  add.bf16("mlp.down_proj.weight", {kHidden, kDense});
}

void add_globals(Tensors& out) {
  Adder add(out, "language_model.");
  add.bf16("lm_head.weight", {kVocab, kHidden});
  add.bf16("model.embed_tokens.weight", {kVocab, kHidden});
  add.bf16("model.norm.weight", {kHidden});
  add.bf16("model.output_attn_res_norm.weight", {kHidden});
  add.bf16("model.output_attn_res_proj.weight", {1, kHidden});
}

void add_projector(Tensors& out) {
  Adder add(out, "mm_projector.");
  add.bf16("proj.0.weight", {4096, 4096});
  add.bf16("proj.2.weight", {kHidden, 4096});
  add.bf16("post_norm.weight", {kHidden});
}

void add_vision(Tensors& out) {
  Adder add(out, "vision_tower.");
  add.bf16("patch_embed.proj.weight", {1024, 3, 14, 14});
  add.bf16("patch_embed.pos_emb.weight", {64, 64, 1024});
  add.bf16("encoder.final_layernorm.weight", {1024});
  for (int block = 0; block < kVisionBlocks; ++block) {
    const std::string name = "encoder.blocks." + std::to_string(block) + ".";
    add.bf16(name + "norm0.weight", {1024});
    add.bf16(name + "norm1.weight", {1024});
    add.bf16(name + "wqkv.weight", {4608, 1024});
    add.bf16(name + "wo.weight", {1024, 1536});
    add.bf16(name + "mlp.fc0.weight", {4096, 1024});
    add.bf16(name + "mlp.fc1.weight", {1024, 4096});
  }
}

// F32, then BF16, then U8.
int dtype_rank(const Tensor& tensor) {
  return tensor.dtype == "F32" ? 0 : tensor.dtype == "BF16" ? 1 : 2;
}

}  // namespace

uint64_t Tensor::bytes() const {
  uint64_t bytes = element_bytes(dtype);
  for (const int64_t dim : shape) bytes *= static_cast<uint64_t>(dim);
  return bytes;
}

bool is_mla(int layer) { return layer % 4 == 3 || layer == kLayers - 1; }

std::vector<Tensor> shard_tensors(int shard) {
  CHECK(shard >= 1 && shard <= kShards);
  Tensors tensors;
  switch (shard) {
    case kGlobalShard:
      add_globals(tensors);
      break;
    case kProjectorShard:
      add_projector(tensors);
      break;
    case kVisionShard:
      add_vision(tensors);
      break;
    default:
      add_layer(tensors, shard - 1);
  }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tuple(dtype_rank(a), std::string_view(a.name)) <
           std::tuple(dtype_rank(b), std::string_view(b.name));
  });
  return tensors;
}

ShardSize published_size(int shard) {
  switch (shard) {
    case 1:
      return {23, 2'341'213'184};
    case kGlobalShard:
      return {5, 4'697'663'488};
    case kProjectorShard:
      return {3, 92'289'024};
    case kVisionShard:
      return {165, 802'428'928};
    default:
      CHECK(shard >= kFirstMoeShard && shard < kGlobalShard);
      return is_mla(shard - 1) ? ShardSize{5398, 16'566'684'160} : ShardSize{5404, 16'990'092'800};
  }
}

std::string shard_name(int shard) {
  const std::string number = std::to_string(shard);
  return "model-" + std::string(5 - number.size(), '0') + number + "-of-000096.safetensors";
}

}  // namespace sluice::replica
