#include "format/config.h"

#include <algorithm>

#include "format/json_fields.h"

namespace sluice {
namespace {

// Bounds of single dimensions, far above any released model. With them no product that the program
// forms (the largest: layers x experts x three matrices x 4 bytes, under 2^62) passes int64.
constexpr int64_t kWidthMax = int64_t{1} << 17;
constexpr int64_t kVocabMax = int64_t{1} << 24;
constexpr int64_t kPositionsMax = int64_t{1} << 31;
constexpr int64_t kPositionsDefault = int64_t{1} << 20;  // both released models
constexpr int64_t kHeadsMax = 4096;
constexpr int64_t kHeadDimMax = 4096;
constexpr int64_t kExpertsMax = 8192;
constexpr int64_t kSharedExpertsMax = 64;

// spec 1.3: the two 1-based lists are disjoint and cover every layer once.
std::vector<bool> parse_layer_kinds(const JsonFields& linear, int64_t n_layers) {
  std::vector<bool> is_kda(static_cast<size_t>(n_layers), false);
  std::vector<bool> seen(static_cast<size_t>(n_layers), false);
  for (const char* key : {"kda_layers", "full_attn_layers"}) {
    for (const int64_t layer : linear.integers(key, 1, n_layers)) {
      const auto index = static_cast<size_t>(layer - 1);
      if (seen[index]) {
        linear.report(key, "lists layer " + std::to_string(layer) +
                               ", which is listed before: kda_layers and full_attn_layers must "
                               "name every layer once");
      }
      seen[index] = true;
      is_kda[index] = std::string_view(key) == "kda_layers";
    }
  }
  if (const auto hole = std::find(seen.begin(), seen.end(), false); hole != seen.end()) {
    linear.report("kda_layers", "and full_attn_layers both lack layer " +
                                    std::to_string(hole - seen.begin() + 1));
  }
  return is_kda;
}

KdaConfig parse_kda(const JsonFields& linear) {
  KdaConfig kda;
  kda.n_heads = linear.count("num_heads", kHeadsMax);
  kda.head_dim = linear.count("head_dim", kKdaHeadDimMax);
  kda.conv_size = linear.count("short_conv_kernel_size", kConvSizeMax);
  kda.gate_lower_bound = linear.number("gate_lower_bound");
  if (kda.gate_lower_bound && !(*kda.gate_lower_bound < 0)) {
    linear.report("gate_lower_bound", "must be negative: the state would grow without limit");
  }
  kda.full_rank_gate = linear.flag_or("use_full_rank_gate", false);
  return kda;
}

MlaConfig parse_mla(const JsonFields& text) {
  MlaConfig mla;
  mla.n_heads = text.count("num_attention_heads", kHeadsMax);
  const int64_t n_kv_heads = text.count_or("num_key_value_heads", kHeadsMax, mla.n_heads);
  if (n_kv_heads != mla.n_heads) {
    text.report("num_key_value_heads", "is " + std::to_string(n_kv_heads) +
                                           ", but must equal num_attention_heads, " +
                                           std::to_string(mla.n_heads));
  }
  mla.q_lora_rank = text.count_or("q_lora_rank", kWidthMax, 0);
  mla.kv_lora_rank = text.count("kv_lora_rank", kWidthMax);
  mla.qk_nope_head_dim = text.count("qk_nope_head_dim", kHeadDimMax);
  mla.qk_rope_head_dim = text.count("qk_rope_head_dim", kHeadDimMax);
  mla.v_head_dim = text.count("v_head_dim", kHeadDimMax);
  mla.output_gate = text.flag_or("mla_use_output_gate", false);
  if (!text.flag_or("mla_use_nope", false)) {
    text.report("mla_use_nope", "is not true: rotary MLA is not supported", Code::kUnsupported);
  }
  return mla;
}

// Group-limited routing (spec 4.6) must leave room for every chosen expert.
void check_groups(const JsonFields& text, const MoeConfig& moe) {
  if (moe.n_experts % moe.n_groups != 0) {
    text.report("num_experts", "is " + std::to_string(moe.n_experts) +
                                   ", no multiple of num_expert_group, " +
                                   std::to_string(moe.n_groups));
  }
  if (moe.topk_group > moe.n_groups) {
    text.report("topk_group", "is " + std::to_string(moe.topk_group) +
                                  ", above num_expert_group, " + std::to_string(moe.n_groups));
  }
  if (moe.n_experts_per_token > moe.n_experts) {
    text.report("num_experts_per_token", "is " + std::to_string(moe.n_experts_per_token) +
                                             ", above num_experts, " +
                                             std::to_string(moe.n_experts));
  }
  if (moe.topk_group == moe.n_groups) return;
  const int64_t group_size = moe.n_experts / moe.n_groups;
  if (group_size < 2 || moe.n_experts_per_token > moe.topk_group * group_size) {
    text.report("topk_group",
                "leaves too few experts: topk_group x num_experts / "
                "num_expert_group must reach num_experts_per_token");
  }
}

MoeConfig parse_moe(const JsonFields& text) {
  MoeConfig moe;
  moe.first_dense_layers = text.index_or("first_k_dense_replace", kLayersMax, 0);
  moe.layer_freq = text.count_or("moe_layer_freq", kLayersMax, 1);
  moe.n_experts = text.count_or("num_experts", kExpertsMax, 0);
  if (moe.n_experts == 0) return moe;
  moe.n_experts_per_token = text.count("num_experts_per_token", kExpertsMax);
  moe.n_shared_experts = text.index_or("num_shared_experts", kSharedExpertsMax, 0);
  moe.intermediate_size = text.count("moe_intermediate_size", kWidthMax);
  moe.latent_size = text.count_or("routed_expert_hidden_size", kWidthMax, 0);
  moe.latent_norm = text.flag_or("latent_moe_use_norm", false) && moe.latent_size > 0;
  const std::string score = text.text_or("moe_router_activation_func", "sigmoid");
  moe.score = score == "softmax" ? RouterScore::kSoftmax : RouterScore::kSigmoid;
  if (score != "sigmoid" && score != "softmax") {
    text.report("moe_router_activation_func",
                "is \"" + score + "\", but only sigmoid and softmax are supported",
                Code::kUnsupported);
  }
  if (const std::string method = text.text_or("topk_method", "noaux_tc"); method != "noaux_tc") {
    text.report("topk_method", "is \"" + method + "\", but only noaux_tc is supported",
                Code::kUnsupported);
  }
  moe.renormalize = text.flag_or("moe_renormalize", true);
  moe.routed_scaling_factor = text.positive_or("routed_scaling_factor", 1.0f);
  moe.n_groups = text.count_or("num_expert_group", kExpertsMax, 1);
  moe.topk_group = text.count_or("topk_group", kExpertsMax, 1);
  check_groups(text, moe);
  return moe;
}

void parse_activation(const JsonFields& text, Config& config) {
  const std::string name = text.text_or("hidden_act", "silu");
  config.activation = name == "situ" ? Activation::kSitu : Activation::kSilu;
  if (name != "situ" && name != "silu") {
    text.report("hidden_act", "is \"" + name + "\", but only situ and silu are supported",
                Code::kUnsupported);
  }
  config.situ_beta = text.positive_or("activation_situ_beta", 1.0f);
  if (text.find("activation_situ_linear_beta")) {
    config.situ_linear_beta = text.positive_or("activation_situ_linear_beta", 1.0f);
  }
}

std::vector<TokenId> token_ids(const JsonFields& fields, const char* key, int64_t vocab_size) {
  std::vector<TokenId> ids;
  for (const int64_t id : fields.integer_or_list(key, vocab_size - 1)) {
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

// The id under `key` at the top level, else in text_config, else -1.
TokenId token_id(const JsonFields& top, const JsonFields& text, const char* key, int64_t vocab) {
  const JsonFields& where = top.find(key) ? top : text;
  return static_cast<TokenId>(where.index_or(key, vocab - 1, -1));
}

void set_stop_tokens(Config& config, std::vector<TokenId> ids) {
  if (ids.empty()) return;
  config.eos_token_id = ids.front();
  config.stop_token_ids = std::move(ids);
}

void parse_tokens(const JsonFields& top, const JsonFields& text, Config& config) {
  const JsonFields& eos = top.find("eos_token_id") ? top : text;
  set_stop_tokens(config, token_ids(eos, "eos_token_id", config.vocab_size));
  config.bos_token_id = token_id(top, text, "bos_token_id", config.vocab_size);
  config.pad_token_id = token_id(top, text, "pad_token_id", config.vocab_size);
  config.media_placeholder_token_id =
      token_id(top, text, "media_placeholder_token_id", config.vocab_size);
}

Status not_an_object(std::string_view name) {
  return Error{Code::kInvalid, std::string(name) + ": must hold a JSON object"};
}

}  // namespace

bool Config::is_moe(LayerId layer) const {
  return moe.n_experts > 0 && layer.v >= moe.first_dense_layers && layer.v % moe.layer_freq == 0;
}

int64_t Config::n_attn_res_blocks() const {
  if (attn_res_block_size == 0) return 0;
  return (n_layers + attn_res_block_size - 1) / attn_res_block_size;
}

Result<Config> parse_config(std::string_view json_text, std::string_view name) {
  TRY(const Json root, parse_json(json_text, name));
  if (!root.is_object()) return not_an_object(name).error();
  FieldProblem problem(name);
  const JsonFields top(root, "", problem);
  const bool nested = top.find("text_config") != nullptr;
  const JsonFields text(nested ? top.object("text_config") : root, nested ? "text_config." : "",
                        problem);
  TRY_OK(problem.status());

  Config config;
  config.hidden_size = text.count("hidden_size", kWidthMax);
  config.n_layers = text.count("num_hidden_layers", kLayersMax);
  config.vocab_size = text.count("vocab_size", kVocabMax);
  config.max_positions =
      text.count_or("max_position_embeddings", kPositionsMax,
                    text.count_or("model_max_length", kPositionsMax, kPositionsDefault));
  config.intermediate_size = text.count("intermediate_size", kWidthMax);
  config.rms_norm_eps = text.positive_or("rms_norm_eps", 1e-6f);
  config.attn_res_block_size = text.count_or("attn_res_block_size", kLayersMax, 0);
  config.tie_word_embeddings =
      (top.find("tie_word_embeddings") ? top : text).flag_or("tie_word_embeddings", false);
  parse_activation(text, config);
  config.mla = parse_mla(text);
  config.moe = parse_moe(text);
  const JsonFields linear(text.object("linear_attn_config"), text.name("linear_attn_config."),
                          problem);
  TRY_OK(problem.status());
  config.kda = parse_kda(linear);
  config.layer_is_kda = parse_layer_kinds(linear, config.n_layers);
  parse_tokens(top, text, config);
  TRY_OK(problem.status());
  return config;
}

Status apply_generation_config(std::string_view json_text, std::string_view name, Config& config) {
  TRY(const Json root, parse_json(json_text, name));
  if (!root.is_object()) return not_an_object(name);
  FieldProblem problem(name);
  const JsonFields fields(root, "", problem);
  std::vector<TokenId> ids = token_ids(fields, "eos_token_id", config.vocab_size);
  TRY_OK(problem.status());
  set_stop_tokens(config, std::move(ids));
  return Ok{};
}

}  // namespace sluice
