// Weights that are no numbers, through whole passes: never a crash; logits that are not finite give
// the sampler's error, and every kernel table agrees.
#include <array>
#include <cstdint>
#include <string>

#include "engine/tiny_engine.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"
#include "kernels/dispatch.h"

namespace sluice {
namespace {

// Fills the payload of tensors of one shard with a repeated pattern.
void fill(const std::filesystem::path& path, const std::string& name_part,
          std::string_view pattern) {
  int n_filled = 0;
  edit_safetensors(path, [&](RawSafetensors& raw) {
    for (const auto& [name, entry] : raw.header.items()) {
      if (name.find(name_part) == std::string::npos) continue;
      ++n_filled;
      const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      for (size_t i = begin; i < end; ++i) raw.payload[i] = pattern[(i - begin) % pattern.size()];
    }
  });
  EXPECT_GT(n_filled, 0) << name_part;
}

struct Damage {
  int shard;
  std::string tensors;  // a part of their names
  std::string pattern;
};

GenerateReply reply_of(const TinyCopy& copy, const std::string& isa, double temperature) {
  EngineOptions options = tiny_options();
  options.model = copy.path();
  options.isa = isa;
  const auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().what;
  if (!engine.ok()) return {};
  GenerateRequest request = greedy_request(read_goldens()[0]);
  request.tokens.max_new = 4;
  if (temperature > 0) {
    request.tokens.sampling = {.temperature = temperature, .top_k = 40, .top_p = 0.9, .seed = 7};
  }
  return engine.value()->generate(request, nullptr, {});
}

GenerateReply reply_with(const Damage& damage, const std::string& isa, double temperature = 0) {
  const TinyCopy copy;
  fill(copy.own_shard(damage.shard), damage.tensors, damage.pattern);
  return reply_of(copy, isa, temperature);
}

void expect_not_finite(const GenerateReply& reply, const std::string& what) {
  EXPECT_EQ(reply.finish, FinishReason::kError) << what;
  ASSERT_TRUE(reply.error) << what;
  EXPECT_EQ(reply.error->code, Code::kCorrupt) << what << reply.error->what;
  EXPECT_NE(reply.error->what.find("position"), std::string::npos) << what << reply.error->what;
}

const std::string kNan = "\xC0\x7F", kInfinity = {'\x80', '\x7F'};  // bf16, low byte first
const std::string kMinusInfinity = {'\x80', '\xFF'}, kLargest = {'\x7F', '\x7F'};

TEST(HostileWeights, NanScalesOfExpertsGiveTheSamplersError) {
  for (const std::string isa : {"scalar", "auto"}) {
    for (const double temperature : {0.0, 1.0}) {
      expect_not_finite(reply_with({2, ".weight_scale", "\xFF"}, isa, temperature), isa);
    }
  }
}

TEST(HostileWeights, TheLargestScaleOverflowsWithoutACrash) {
  for (const std::string isa : {"scalar", "auto"}) {
    expect_not_finite(reply_with({2, ".weight_scale", "\xFE"}, isa), isa);
  }
}

// Byte 0 is 2^-127: such experts add nothing that a residual could hold, as if their codes were 0.
TEST(HostileWeights, AScaleOfZeroIsASubnormalNotAFault) {
  const GenerateReply silent = reply_with({2, ".weight_packed", std::string(1, '\0')}, "scalar");
  ASSERT_FALSE(silent.error) << silent.error->what;
  EXPECT_FALSE(silent.ids.empty());
  for (const std::string isa : {"scalar", "auto"}) {
    const GenerateReply reply = reply_with({2, ".weight_scale", std::string(1, '\0')}, isa);
    ASSERT_FALSE(reply.error) << reply.error->what;
    EXPECT_EQ(reply.ids, silent.ids) << isa;
  }
}

// One tensor of a KDA layer (shard 2) or an MLA layer (shard 4) at a time.
TEST(HostileWeights, NanAndInfiniteBf16WeightsEndInTheErrorOrInAReply) {
  const std::vector<std::pair<int, std::string>> kTensors = {
      {2, "self_attn.q_proj.weight"},
      {2, "self_attn.k_proj.weight"},
      {2, "self_attn.f_a_proj.weight"},
      {2, "self_attn.o_norm.weight"},
      {2, "self_attn.v_conv1d.weight"},
      {2, "A_log"},
      {2, "dt_bias"},
      {2, "block_sparse_moe.gate.weight"},
      {2, "e_score_correction_bias"},
      {2, "input_layernorm.weight"},
      {2, "routed_expert_norm"},
      {2, "self_attention_res_proj"},
      {2, "shared_experts.down_proj"},
      {4, "self_attn.kv_a_proj_with_mqa.weight"},
      {4, "self_attn.kv_a_layernorm.weight"},
      {4, "self_attn.q_b_proj.weight"}};
  for (const std::string& pattern : {kNan, kInfinity, kMinusInfinity, kLargest}) {
    for (const auto& [shard, tensors] : kTensors) {
      const GenerateReply reply = reply_with({shard, tensors, pattern}, "auto");
      if (reply.error) {
        expect_not_finite(reply, tensors);
      } else {
        EXPECT_EQ(reply.ids.size(), 4u) << tensors;
      }
    }
  }
}

// A NaN that surely reaches the logits.
TEST(HostileWeights, NanInTheHeadOrTheEmbeddingGivesTheSamplersError) {
  expect_not_finite(reply_with({10, "lm_head.weight", kNan}, "auto"), "lm_head");
  expect_not_finite(reply_with({10, "model.norm.weight", kInfinity}, "auto"), "norm");
  expect_not_finite(reply_with({10, "embed_tokens.weight", kNan}, "auto"), "embed");
}

TEST(HostileWeights, AnEngineServesOnAfterNotFiniteLogits) {
  // Only the row of one token is damaged: a prompt without it is not touched.
  const TinyCopy copy;
  const Golden good = read_goldens()[0];
  TokenId bad = 100;
  while (std::ranges::find(good.prompt, bad) != good.prompt.end()) ++bad;
  edit_safetensors(copy.own_shard(10), [&](RawSafetensors& raw) {
    const size_t begin = raw.header["language_model.model.embed_tokens.weight"]["data_offsets"][0];
    for (size_t i = 0; i < 512; ++i) {
      raw.payload[begin + static_cast<size_t>(bad) * 512 + i] = kNan[i % 2];
    }
  });
  EngineOptions options = tiny_options();
  options.model = copy.path();
  const auto engine = Engine::open(options);
  ASSERT_TRUE(engine.ok()) << engine.error().what;
  GenerateRequest request = greedy_request(good);
  request.tokens.prompt = {bad, 5, 6};
  expect_not_finite(engine.value()->generate(request, nullptr, {}), "bad row");
  request.tokens.prompt = good.prompt;
  const GenerateReply reply = engine.value()->generate(request, nullptr, {});
  ASSERT_FALSE(reply.error) << reply.error->what;
  EXPECT_EQ(reply.ids, good.greedy);
}

}  // namespace
}  // namespace sluice
