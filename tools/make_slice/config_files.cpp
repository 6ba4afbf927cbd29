#include "make_slice/config_files.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace sluice::slice {
namespace {

constexpr int64_t kRanks = 163'584;

Json quantization_config() {
  const char* format = "mxfp4-pack-quantized";
  const Json weights = {{"num_bits", 4},        {"type", "float"},
                        {"strategy", "group"},  {"group_size", 32},
                        {"symmetric", true},    {"scale_dtype", "torch.uint8"},
                        {"zp_dtype", nullptr},  {"dynamic", false},
                        {"actorder", nullptr},  {"block_structure", nullptr},
                        {"observer", "minmax"}, {"observer_kwargs", Json::object()}};
  const Json group = {{"targets", {"Linear"}},
                      {"input_activations", nullptr},
                      {"output_activations", nullptr},
                      {"format", format},
                      {"weights", weights}};
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"quantization_status", "compressed"},
          {"kv_cache_scheme", nullptr},
          {"global_compression_ratio", nullptr},
          {"config_groups", {{"group_0", group}}},
          {"ignore",
           {"re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
            "re:.*lm_head.*", "re:.*vision_tower.*", "re:.*mm_projector.*"}}};
}

// Counted from 1, as the release does.
Json linear_attn_config(const Shape& shape) {
  Json full = Json::array(), kda = Json::array();
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    (is_mla(shape, layer) ? full : kda).push_back(layer + 1);
  }
  return {{"full_attn_layers", full},  {"kda_layers", kda},           {"head_dim", 128},
          {"num_heads", shape.heads},  {"short_conv_kernel_size", 4}, {"gate_lower_bound", -5.0},
          {"use_full_rank_gate", true}};
}

Json text_config(const Shape& shape) {
  return {{"model_type", "kimi_linear"},
          {"architectures", {"KimiLinearForCausalLM"}},
          {"hidden_size", shape.hidden},
          {"num_hidden_layers", shape.layers},
          {"vocab_size", kVocab},
          {"max_position_embeddings", 1048576},
          {"rms_norm_eps", 1e-5},
          {"hidden_act", "situ"},
          {"activation_situ_beta", 4.0},
          {"activation_situ_linear_beta", 25.0},
          {"intermediate_size", shape.dense},
          {"first_k_dense_replace", 1},
          {"moe_layer_freq", 1},
          {"num_attention_heads", shape.heads},
          {"num_key_value_heads", shape.heads},
          {"q_lora_rank", shape.q_lora},
          {"kv_lora_rank", shape.kv_lora},
          {"qk_nope_head_dim", 128},
          {"qk_rope_head_dim", 64},
          {"v_head_dim", 128},
          {"mla_use_nope", true},
          {"mla_use_output_gate", true},
          {"linear_attn_config", linear_attn_config(shape)},
          {"attn_res_block_size", 12},
          {"num_experts", shape.experts},
          {"num_experts_per_token", shape.experts_per_token},
          {"num_shared_experts", 2},
          {"moe_intermediate_size", shape.inner},
          {"routed_expert_hidden_size", shape.latent},
          {"latent_moe_use_norm", true},
          {"moe_router_activation_func", "sigmoid"},
          {"moe_renormalize", true},
          {"routed_scaling_factor", 1.0},
          {"use_grouped_topk", true},
          {"num_expert_group", 1},
          {"topk_group", 1},
          {"topk_method", "noaux_tc"},
          {"num_nextn_predict_layers", 0},
          {"bos_token_id", 163584},
          {"eos_token_id", 163586},
          {"pad_token_id", 163839},
          {"dtype", "bfloat16"},
          {"tie_word_embeddings", false},
          {"initializer_range", 0.02},
          {"use_cache", true},
          {"temperature", 1.0},
          {"top_k", 50},
          {"top_p", 1.0},
          {"do_sample", false},
          {"num_beams", 1},
          {"max_length", 20},
          {"min_length", 0},
          {"repetition_penalty", 1.0},
          {"typical_p", 1.0},
          {"transformers_version", "4.56.2"},
          {"torchscript", false},
          {"return_dict", true},
          {"quantization_config", quantization_config()}};
}

Json vision_config() {
  return {{"patch_size", 14},
          {"vt_hidden_size", 1024},
          {"vt_intermediate_size", 4096},
          {"vt_num_hidden_layers", 27},
          {"vt_num_attention_heads", 12},
          {"qkv_hidden_size", 1536},
          {"norm_type", "rmsnorm"},
          {"mlp_type", "mlp2"},
          {"activation_func", "gelu_pytorch_tanh"},
          {"attn_bias", false},
          {"linear_bias", false},
          {"patch_embed_proj_bias", false},
          {"init_pos_emb_height", 64},
          {"init_pos_emb_width", 64},
          {"init_pos_emb_time", 4},
          {"pos_emb_type", "divided_fixed"},
          {"pos_emb_interpolation_mode", "bilinear"},
          {"merge_type", "sd2_tpool"},
          {"merge_kernel_size", {2, 2}},
          {"mm_projector_type", "patchmergerv2"},
          {"mm_hidden_size", 1024},
          {"projector_hidden_act", "gelu"},
          {"projector_ln_eps", 1e-5},
          {"text_hidden_size", 7168},
          {"_attn_implementation", "flash_attention_2"}};
}

// `bytes` has one or three bytes.
void append_base64(std::string_view bytes, std::string& out) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t bits = 0;
  for (size_t i = 0; i < 3; ++i) {
    bits = bits << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0u);
  }
  for (size_t i = 0; i < 4; ++i) {
    out += i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
}

}  // namespace

Json config_json(const Shape& shape) {
  const char* model = "modeling_kimi_k3.KimiK3ForConditionalGeneration";
  return {{"architectures", {"KimiK3ForConditionalGeneration"}},
          {"auto_map",
           {{"AutoConfig", "configuration_kimi_k3.KimiK3Config"},
            {"AutoModel", model},
            {"AutoModelForCausalLM", model}}},
          {"bos_token_id", 163584},
          {"dtype", "bfloat16"},
          {"eos_token_id", 163586},
          {"ignore_index", -100},
          {"image_placeholder", "<|kimi_image_placeholder|>"},
          {"media_placeholder_token_id", 163605},
          {"model_type", "kimi_k3"},
          {"pad_token_id", 163839},
          {"text_config", text_config(shape)},
          {"tie_word_embeddings", false},
          {"vision_config", vision_config()}};
}

Json tokenizer_config_json() {
  constexpr std::array<std::pair<int, const char*>, 16> kSpellings = {{
      {163584, "[BOS]"},
      {163585, "[EOS]"},
      {163586, "<|end_of_msg|>"},
      {163587, "<|open|>"},
      {163588, "<|close|>"},
      {163589, "<|sep|>"},
      {163590, "[start_header_id]"},
      {163591, "[end_header_id]"},
      {163593, "[EOT]"},
      {163602, "<|media_begin|>"},
      {163603, "<|media_content|>"},
      {163604, "<|media_end|>"},
      {163605, "<|media_pad|>"},
      {163649, "<osagent_mode>"},
      {163838, "[UNK]"},
      {163839, "[PAD]"},
  }};
  Json added = Json::object();
  for (const auto& [id, spelling] : kSpellings) {
    added[std::to_string(id)] = {{"content", spelling},  {"lstrip", false},
                                 {"normalized", false},  {"rstrip", false},
                                 {"single_word", false}, {"special", true}};
  }
  return {{"added_tokens_decoder", added}};
}

std::string tiktoken_model() {
  // 55^3 = 166,375 strings suffice.
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012";
  constexpr auto kBase = static_cast<int64_t>(kLetters.size());
  std::string text;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    std::string bytes;
    if (rank < 256) {
      bytes = static_cast<char>(rank);
    } else {
      const int64_t number = rank - 256;
      for (const int64_t digit :
           {number / (kBase * kBase), number / kBase % kBase, number % kBase}) {
        bytes += kLetters[static_cast<size_t>(digit)];
      }
    }
    append_base64(bytes, text);
    text += ' ' + std::to_string(rank) + '\n';
  }
  return text;
}

}  // namespace sluice::slice
