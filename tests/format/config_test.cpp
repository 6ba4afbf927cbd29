// What config.json means: every key, every default.
#include "format/config.h"

#include <string>

#include <gtest/gtest.h>

#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

// The least that a flat config must say.
constexpr const char* kMinimal = R"({
  "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 100, "intermediate_size": 128,
  "num_attention_heads": 2, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
  "v_head_dim": 8, "mla_use_nope": true,
  "linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4], "head_dim": 16,
                         "num_heads": 4, "short_conv_kernel_size": 4}})";

Config parse(const std::string& text) {
  Result<Config> config = parse_config(text, "config.json");
  EXPECT_TRUE(config.ok()) << config.error().what;
  return config.ok() ? config.value() : Config{};
}

TEST(Config, ReadsEveryKeyOfTheBundledModel) {
  const Config c = parse(read_file(tiny_k3() / "config.json"));
  EXPECT_EQ(c.hidden_size, 256);
  EXPECT_EQ(c.n_layers, 9);
  EXPECT_EQ(c.vocab_size, 4096);
  EXPECT_EQ(c.max_positions, 4096);
  EXPECT_EQ(c.intermediate_size, 512);
  EXPECT_EQ(c.rms_norm_eps, 1e-5f);
  EXPECT_EQ(c.activation, Activation::kSitu);
  EXPECT_EQ(c.situ_beta, 4.0f);
  EXPECT_EQ(c.situ_linear_beta, 25.0f);
  EXPECT_EQ(c.attn_res_block_size, 3);
  EXPECT_EQ(c.n_attn_res_blocks(), 3);
  EXPECT_FALSE(c.tie_word_embeddings);
  EXPECT_EQ(c.layer_is_kda, (std::vector<bool>{1, 1, 1, 0, 1, 1, 1, 0, 0}));
  EXPECT_TRUE(c.is_kda(LayerId{0}));
  EXPECT_FALSE(c.is_kda(LayerId{8}));
  EXPECT_EQ(c.kda.n_heads, 4);
  EXPECT_EQ(c.kda.head_dim, 32);
  EXPECT_EQ(c.kda.conv_size, 4);
  EXPECT_EQ(c.kda.gate_lower_bound, -5.0f);
  EXPECT_TRUE(c.kda.full_rank_gate);
  EXPECT_EQ(c.mla.n_heads, 4);
  EXPECT_EQ(c.mla.q_lora_rank, 96);
  EXPECT_EQ(c.mla.kv_lora_rank, 64);
  EXPECT_EQ(c.mla.qk_head_dim(), 48);
  EXPECT_EQ(c.mla.latent_dim(), 80);
  EXPECT_EQ(c.mla.v_head_dim, 32);
  EXPECT_TRUE(c.mla.output_gate);
  EXPECT_EQ(c.bos_token_id, 3840);
  EXPECT_EQ(c.eos_token_id, 3842);
  EXPECT_EQ(c.pad_token_id, 4095);
  EXPECT_EQ(c.media_placeholder_token_id, 3861);
}

TEST(Config, ReadsTheExpertsOfTheBundledModel) {
  const Config c = parse(read_file(tiny_k3() / "config.json"));
  EXPECT_EQ(c.moe.n_experts, 48);
  EXPECT_EQ(c.moe.n_experts_per_token, 8);
  EXPECT_EQ(c.moe.n_shared_experts, 2);
  EXPECT_EQ(c.moe.intermediate_size, 96);
  EXPECT_EQ(c.moe.latent_size, 128);
  EXPECT_EQ(c.expert_width(), 128);
  EXPECT_TRUE(c.moe.latent_norm);
  EXPECT_EQ(c.moe.score, RouterScore::kSigmoid);
  EXPECT_TRUE(c.moe.renormalize);
  EXPECT_EQ(c.moe.routed_scaling_factor, 1.0f);
  EXPECT_EQ(c.moe.n_groups, 1);
  EXPECT_EQ(c.moe.topk_group, 1);
  EXPECT_FALSE(c.is_moe(LayerId{0}));
  EXPECT_TRUE(c.is_moe(LayerId{1}));
}

TEST(Config, AbsentKeysHaveTheReferenceDefaults) {
  const Config c = parse(kMinimal);
  EXPECT_EQ(c.activation, Activation::kSilu);
  EXPECT_EQ(c.rms_norm_eps, 1e-6f);
  EXPECT_EQ(c.situ_beta, 1.0f);
  EXPECT_FALSE(c.situ_linear_beta.has_value());
  EXPECT_EQ(c.attn_res_block_size, 0);
  EXPECT_EQ(c.n_attn_res_blocks(), 0);
  EXPECT_FALSE(c.tie_word_embeddings);
  EXPECT_EQ(c.mla.q_lora_rank, 0);
  EXPECT_FALSE(c.mla.output_gate);
  EXPECT_FALSE(c.kda.gate_lower_bound.has_value());
  EXPECT_FALSE(c.kda.full_rank_gate);
  EXPECT_EQ(c.moe.n_experts, 0);
  EXPECT_FALSE(c.is_moe(LayerId{0}));
  EXPECT_EQ(c.max_positions, int64_t{1} << 20);
  EXPECT_EQ(c.eos_token_id, -1);
  EXPECT_TRUE(c.stop_token_ids.empty());
  EXPECT_EQ(c.bos_token_id, -1);
}

TEST(Config, ExpertsHaveTheReferenceDefaults) {
  Json json = parse_json(kMinimal, "t").value();
  json["num_experts"] = 8;
  json["num_experts_per_token"] = 2;
  json["moe_intermediate_size"] = 32;
  const Config c = parse(dump_json(json));
  EXPECT_EQ(c.moe.n_shared_experts, 0);
  EXPECT_EQ(c.moe.latent_size, 0);
  EXPECT_EQ(c.expert_width(), 64);
  EXPECT_FALSE(c.moe.latent_norm);
  EXPECT_EQ(c.moe.score, RouterScore::kSigmoid);
  EXPECT_TRUE(c.moe.renormalize);
  EXPECT_EQ(c.moe.routed_scaling_factor, 1.0f);
  EXPECT_EQ(c.moe.first_dense_layers, 0);
  EXPECT_EQ(c.moe.layer_freq, 1);
  EXPECT_TRUE(c.is_moe(LayerId{0}));
}

TEST(Config, NullIsAnAbsentKey) {
  Json json = parse_json(kMinimal, "t").value();
  for (const char* key : {"q_lora_rank", "attn_res_block_size", "routed_expert_hidden_size",
                          "activation_situ_linear_beta", "num_experts", "eos_token_id"}) {
    json[key] = nullptr;
  }
  json["linear_attn_config"]["gate_lower_bound"] = nullptr;
  const Config c = parse(dump_json(json));
  EXPECT_EQ(c.mla.q_lora_rank, 0);
  EXPECT_EQ(c.moe.n_experts, 0);
}

TEST(Config, MoeLayersFollowTheFirstDenseLayersAndTheFrequency) {
  Config c;
  c.moe.n_experts = 8;
  c.moe.first_dense_layers = 3;
  c.moe.layer_freq = 2;
  std::string kinds;
  for (int32_t layer = 0; layer < 8; ++layer) kinds += c.is_moe(LayerId{layer}) ? 'e' : 'd';
  EXPECT_EQ(kinds, "ddddeded");
}

TEST(Config, AttnResBlocksAreCountedWithTheLastIncompleteOne) {
  Config c;
  c.attn_res_block_size = 12;
  c.n_layers = 93;
  EXPECT_EQ(c.n_attn_res_blocks(), 8);
  c.n_layers = 96;
  EXPECT_EQ(c.n_attn_res_blocks(), 8);
}

TEST(Config, TheModelTypeDecidesNothing) {
  Json json = parse_json(read_file(tiny_k3() / "config.json"), "t").value();
  json["model_type"] = "something_else";
  json["text_config"]["model_type"] = "another";
  json.erase("architectures");
  EXPECT_EQ(parse(dump_json(json)).hidden_size, 256);
}

TEST(Config, GenerationConfigOverridesTheStopTokens) {
  Json json = parse_json(kMinimal, "t").value();
  json["eos_token_id"] = {7, 9};
  Config c = parse(dump_json(json));
  EXPECT_EQ(c.eos_token_id, 7);
  EXPECT_EQ(c.stop_token_ids, (std::vector<TokenId>{7, 9}));
  ASSERT_TRUE(apply_generation_config(R"({"max_length": 10})", "g", c).ok());
  EXPECT_EQ(c.eos_token_id, 7);
  ASSERT_TRUE(apply_generation_config(R"({"eos_token_id": 5})", "g", c).ok());
  EXPECT_EQ(c.eos_token_id, 5);
  EXPECT_EQ(c.stop_token_ids, (std::vector<TokenId>{5}));
  const Status bad = apply_generation_config(R"({"eos_token_id": 100})", "gen.json", c);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().what.find("gen.json: eos_token_id"), std::string::npos);
  EXPECT_FALSE(apply_generation_config("[]", "g", c).ok());
  EXPECT_FALSE(apply_generation_config("{", "g", c).ok());
}

TEST(Config, TopLevelTokensWinOverThoseOfTextConfig) {
  Json json = parse_json(read_file(tiny_k3() / "config.json"), "t").value();
  json["text_config"]["eos_token_id"] = 1;
  EXPECT_EQ(parse(dump_json(json)).eos_token_id, 3842);
  json.erase("eos_token_id");
  EXPECT_EQ(parse(dump_json(json)).eos_token_id, 1);
}

}  // namespace
}  // namespace sluice
