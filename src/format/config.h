// config.json of a Kimi K3 or Kimi-Linear checkpoint (spec 1): every key that changes the
// arithmetic, with the defaults of 1.2 and the checks of 1.3. Immutable after parse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

namespace sluice {

// Bounds of config.json that fixed arrays of the forward pass rely on.
constexpr int64_t kLayersMax = 1024;
constexpr int64_t kConvSizeMax = 64;
constexpr int64_t kKdaHeadDimMax = 256;

enum class Activation { kSitu, kSilu };
enum class RouterScore { kSigmoid, kSoftmax };

struct KdaConfig {
  int64_t n_heads = 0;
  int64_t head_dim = 0;                   // key and value width of a head
  int64_t conv_size = 0;                  // taps of the short convolution
  std::optional<float> gate_lower_bound;  // absent: the softplus gate of Kimi-Linear
  bool full_rank_gate = false;            // g_proj; otherwise g_a_proj, g_b_proj
};

struct MlaConfig {
  int64_t n_heads = 0;
  int64_t q_lora_rank = 0;  // 0: one q_proj
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;  // in the score, never rotated
  int64_t v_head_dim = 0;
  bool output_gate = false;
  int64_t qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  int64_t latent_dim() const {
    return kv_lora_rank + qk_rope_head_dim;
  }  // floats cached a position
};

struct MoeConfig {
  int64_t n_experts = 0;  // 0: every layer is dense
  int64_t n_experts_per_token = 0;
  int64_t n_shared_experts = 0;
  int64_t intermediate_size = 0;  // moe_intermediate_size
  int64_t latent_size = 0;        // routed_expert_hidden_size; 0: experts at full width
  bool latent_norm = false;
  RouterScore score = RouterScore::kSigmoid;
  bool renormalize = true;
  float routed_scaling_factor = 1.0f;
  int64_t n_groups = 1;
  int64_t topk_group = 1;
  int64_t first_dense_layers = 0;  // first_k_dense_replace
  int64_t layer_freq = 1;
};

struct Config {
  int64_t hidden_size = 0;
  int64_t n_layers = 0;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;      // max_position_embeddings, else model_max_length, else 2^20
  int64_t intermediate_size = 0;  // dense MLP
  float rms_norm_eps = 1e-6f;
  Activation activation = Activation::kSilu;
  float situ_beta = 1.0f;
  std::optional<float> situ_linear_beta;  // absent: `up` is not squashed
  int64_t attn_res_block_size = 0;        // 0: an ordinary residual stream
  bool tie_word_embeddings = false;
  std::vector<bool> layer_is_kda;  // [n_layers]
  KdaConfig kda;
  MlaConfig mla;
  MoeConfig moe;
  // generation_config.json's wins over config.json's, which may be one id or a list.
  std::vector<TokenId> stop_token_ids;  // every id that ends a reply; may be empty
  TokenId eos_token_id = -1;            // the first of stop_token_ids, or -1
  TokenId bos_token_id = -1;
  TokenId pad_token_id = -1;
  TokenId media_placeholder_token_id = -1;

  bool is_kda(LayerId layer) const { return layer_is_kda[static_cast<size_t>(layer.v)]; }
  // spec 1.2: n_experts set, layer >= first_dense_layers and a multiple of layer_freq.
  bool is_moe(LayerId layer) const;
  // Width at which routed experts run: latent_size, or hidden_size without a latent.
  int64_t expert_width() const { return moe.latent_size ? moe.latent_size : hidden_size; }
  // AttnRes snapshots taken by the end of the model: ceil(n_layers / attn_res_block_size), or 0.
  int64_t n_attn_res_blocks() const;
};

// `name` begins every error (the file's path). kInvalid names the key and what is wrong with it;
// kUnsupported for a valid model outside spec 1 (rotary MLA, an unknown activation).
Result<Config> parse_config(std::string_view json_text, std::string_view name);

// Takes over what generation_config.json says about stop tokens.
Status apply_generation_config(std::string_view json_text, std::string_view name, Config& config);

}  // namespace sluice
