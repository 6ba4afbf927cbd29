// Every config.json that must be refused, with the key its error names.
#include <string>

#include <gtest/gtest.h>

#include "format/config.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

constexpr const char* kRemove = "(remove)";

// The bundled config with `value` (JSON text) at `pointer`, or without that key.
std::string changed(const std::string& pointer, const std::string& value) {
  Json json = parse_json(read_file(tiny_k3() / "config.json"), "t").value();
  const Json::json_pointer at(pointer);
  if (value == kRemove) {
    json[at.parent_pointer()].erase(at.back());
  } else {
    json[at] = parse_json(value, "t").value();
  }
  return dump_json(json);
}

void expect_refused(const std::string& pointer, const std::string& value, Code code,
                    const std::string& text) {
  const Result<Config> config = parse_config(changed(pointer, value), "config.json");
  ASSERT_FALSE(config.ok()) << pointer << " = " << value;
  EXPECT_EQ(config.error().code, code) << config.error().what;
  EXPECT_TRUE(config.error().what.starts_with("config.json: ")) << config.error().what;
  EXPECT_NE(config.error().what.find(text), std::string::npos) << config.error().what;
}

TEST(ConfigRefusal, EveryNeededKeyIsNamedWhenMissing) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size",
        "num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "num_experts_per_token", "moe_intermediate_size", "linear_attn_config"}) {
    expect_refused("/text_config/" + std::string(key), kRemove, Code::kInvalid,
                   "text_config." + std::string(key) + " is missing");
  }
  for (const char* key :
       {"kda_layers", "full_attn_layers", "head_dim", "num_heads", "short_conv_kernel_size"}) {
    expect_refused("/text_config/linear_attn_config/" + std::string(key), kRemove, Code::kInvalid,
                   "text_config.linear_attn_config." + std::string(key) + " is missing");
  }
}

TEST(ConfigRefusal, EverySizeMustBeAPositiveIntegerInBounds) {
  for (const char* key : {"hidden_size",
                          "num_hidden_layers",
                          "vocab_size",
                          "max_position_embeddings",
                          "intermediate_size",
                          "num_attention_heads",
                          "num_key_value_heads",
                          "q_lora_rank",
                          "kv_lora_rank",
                          "qk_nope_head_dim",
                          "qk_rope_head_dim",
                          "v_head_dim",
                          "attn_res_block_size",
                          "num_experts",
                          "num_experts_per_token",
                          "moe_intermediate_size",
                          "moe_layer_freq",
                          "routed_expert_hidden_size",
                          "num_expert_group",
                          "topk_group",
                          "linear_attn_config/head_dim",
                          "linear_attn_config/num_heads",
                          "linear_attn_config/short_conv_kernel_size"}) {
    std::string name = "text_config." + std::string(key);
    if (const size_t slash = name.find('/'); slash != std::string::npos) name[slash] = '.';
    const std::string pointer = "/text_config/" + std::string(key);
    for (const char* value :
         {"0", "-1", "1.5", "\"x\"", "true", "[]", "{}", "-9223372036854775808"}) {
      expect_refused(pointer, value, Code::kInvalid, name + " must be a positive integer, not ");
    }
    for (const char* value :
         {"9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
      expect_refused(pointer, value, Code::kInvalid, name + " is ");
      expect_refused(pointer, value, Code::kInvalid, "above the largest supported value");
    }
  }
}

// The forward pass keeps a head's values, a row's taps and a mixture's sources in arrays of these sizes.
TEST(ConfigRefusal, SizesOfFixedArraysAreBounds) {
  const auto above = [](int64_t bound) { return std::to_string(bound + 1); };
  const std::string what = "above the largest supported value";
  const std::string linear = "/text_config/linear_attn_config/";
  expect_refused(linear + "head_dim", above(kKdaHeadDimMax).c_str(), Code::kInvalid, what);
  expect_refused(linear + "short_conv_kernel_size", above(kConvSizeMax).c_str(), Code::kInvalid, what);
  expect_refused("/text_config/num_hidden_layers", above(kLayersMax).c_str(), Code::kInvalid, what);
}

TEST(ConfigRefusal, CountsThatMayBeZeroMayNotBeNegative) {
  for (const char* key : {"num_shared_experts", "first_k_dense_replace"}) {
    expect_refused("/text_config/" + std::string(key), "-1", Code::kInvalid, key);
    expect_refused("/text_config/" + std::string(key), "1e3", Code::kInvalid, key);
    expect_refused("/text_config/" + std::string(key), "9999999", Code::kInvalid, key);
  }
}

TEST(ConfigRefusal, TheErrorShowsTheWrongValue) {
  expect_refused("/text_config/hidden_size", "\"x\"", Code::kInvalid,
                 "text_config.hidden_size must be a positive integer, not \"x\"");
  expect_refused("/text_config/hidden_size", "\"" + std::string(1000, 'y') + "\"", Code::kInvalid,
                 "y...");
}

TEST(ConfigRefusal, FlagsTextsAndNumbersMustHaveTheirTypes) {
  for (const char* key : {"mla_use_nope", "mla_use_output_gate", "latent_moe_use_norm",
                          "moe_renormalize", "linear_attn_config/use_full_rank_gate"}) {
    expect_refused("/text_config/" + std::string(key), "1", Code::kInvalid,
                   "must be true or false");
  }
  expect_refused("/tie_word_embeddings", "\"no\"", Code::kInvalid, "tie_word_embeddings");
  for (const char* key : {"hidden_act", "moe_router_activation_func", "topk_method"}) {
    expect_refused("/text_config/" + std::string(key), "3", Code::kInvalid, "must be a string");
  }
  for (const char* key : {"rms_norm_eps", "routed_scaling_factor", "activation_situ_beta",
                          "activation_situ_linear_beta"}) {
    for (const char* value : {"0", "-1.0", "1e60", "\"1\""}) {
      expect_refused("/text_config/" + std::string(key), value, Code::kInvalid, key);
    }
  }
  expect_refused("/text_config", "[]", Code::kInvalid, "text_config must be an object");
  expect_refused("/text_config/linear_attn_config", "7", Code::kInvalid, "must be an object");
}

TEST(ConfigRefusal, WhatTheEngineCannotComputeIsUnsupported) {
  expect_refused("/text_config/mla_use_nope", "false", Code::kUnsupported, "mla_use_nope");
  expect_refused("/text_config/mla_use_nope", kRemove, Code::kUnsupported, "mla_use_nope");
  expect_refused("/text_config/hidden_act", "\"gelu\"", Code::kUnsupported,
                 "hidden_act is \"gelu\"");
  expect_refused("/text_config/moe_router_activation_func", "\"relu\"", Code::kUnsupported,
                 "moe_router_activation_func is \"relu\"");
  expect_refused("/text_config/topk_method", "\"greedy\"", Code::kUnsupported, "topk_method");
}

TEST(ConfigRefusal, LayerListsMustNameEveryLayerOnce) {
  const std::string linear = "/text_config/linear_attn_config/";
  expect_refused(linear + "kda_layers", "[1,2,3,5,6]", Code::kInvalid, "lack layer 7");
  expect_refused(linear + "kda_layers", "[1,2,3,4,5,6,7]", Code::kInvalid, "layer 4");
  expect_refused(linear + "kda_layers", "[1,1,2,3,5,6,7]", Code::kInvalid, "layer 1");
  expect_refused(linear + "kda_layers", "[0,1,2,3,5,6,7]", Code::kInvalid, "kda_layers");
  expect_refused(linear + "full_attn_layers", "[4,8,9,10]", Code::kInvalid, "full_attn_layers");
  expect_refused(linear + "full_attn_layers", "[\"4\"]", Code::kInvalid, "full_attn_layers");
  expect_refused(linear + "full_attn_layers", "4", Code::kInvalid, "must be an array");
}

TEST(ConfigRefusal, HeadsExpertsAndGroupsMustFit) {
  expect_refused("/text_config/num_key_value_heads", "2", Code::kInvalid,
                 "num_key_value_heads is 2");
  expect_refused("/text_config/num_experts_per_token", "49", Code::kInvalid,
                 "above num_experts, 48");
  expect_refused("/text_config/num_expert_group", "5", Code::kInvalid, "num_expert_group, 5");
  expect_refused("/text_config/topk_group", "2", Code::kInvalid, "above num_expert_group, 1");
  // One group of 48 / 16 = 3 experts cannot hold the 8 of a token.
  expect_refused("/text_config/num_expert_group", "16", Code::kInvalid, "too few experts");
  expect_refused("/text_config/linear_attn_config/gate_lower_bound", "0.5", Code::kInvalid,
                 "gate_lower_bound");
}

TEST(ConfigRefusal, TokenIdsMustLieInTheVocabulary) {
  for (const char* key :
       {"eos_token_id", "bos_token_id", "pad_token_id", "media_placeholder_token_id"}) {
    for (const char* value : {"4096", "-1", "\"</s>\"", "1.5"}) {
      expect_refused("/" + std::string(key), value, Code::kInvalid, key);
    }
  }
  expect_refused("/eos_token_id", "[1, 4096]", Code::kInvalid, "eos_token_id");
}

TEST(ConfigRefusal, TextThatIsNoObjectIsRefused) {
  for (const char* text : {"", "[]", "7", "{", "{\"hidden_size\": 1, \"hidden_size\": 2}"}) {
    const Result<Config> config = parse_config(text, "dir/config.json");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.error().code, Code::kInvalid);
    EXPECT_TRUE(config.error().what.starts_with("dir/config.json: "));
  }
}

}  // namespace
}  // namespace sluice
