#include "format/tensor_names.h"

#include <array>
#include <charconv>

namespace sluice {
namespace {

constexpr TensorKind kMatrix = TensorKind::kMatrix;
constexpr TensorKind kVector = TensorKind::kVector;

using Specs = std::vector<TensorSpec>;

// Adds the tensors of one layer, or of none: every name gets the prefix it was made with.
class SpecList {
 public:
  explicit SpecList(std::string prefix) : prefix_(std::move(prefix)) {}
  // [rows, cols]
  void matrix(Role role, std::string_view name, int64_t rows, int64_t cols) {
    add(role, name, {rows, cols}, kMatrix);
  }
  void vector(Role role, std::string_view name, std::vector<int64_t> shape) {
    add(role, name, std::move(shape), kVector);
  }
  TensorSpec& last() { return specs_.back(); }
  Specs take() { return std::move(specs_); }

 private:
  void add(Role role, std::string_view name, std::vector<int64_t> shape, TensorKind kind) {
    TensorSpec spec;
    spec.role = role;
    spec.name = prefix_ + std::string(name);
    spec.shape = std::move(shape);
    spec.kind = kind;
    specs_.push_back(std::move(spec));
  }

  std::string prefix_;
  Specs specs_;
};

void add_kda(const Config& config, SpecList& list) {
  const KdaConfig& kda = config.kda;
  const int64_t hidden = config.hidden_size;
  const int64_t width = kda.n_heads * kda.head_dim;
  list.matrix(Role::kQProj, "self_attn.q_proj.weight", width, hidden);
  list.matrix(Role::kKProj, "self_attn.k_proj.weight", width, hidden);
  list.matrix(Role::kVProj, "self_attn.v_proj.weight", width, hidden);
  if (kda.full_rank_gate) {
    list.matrix(Role::kGProj, "self_attn.g_proj.weight", width, hidden);
  } else {
    list.matrix(Role::kGAProj, "self_attn.g_a_proj.weight", kda.head_dim, hidden);
    list.matrix(Role::kGBProj, "self_attn.g_b_proj.weight", width, kda.head_dim);
  }
  list.matrix(Role::kOProj, "self_attn.o_proj.weight", hidden, width);
  list.matrix(Role::kFAProj, "self_attn.f_a_proj.weight", kda.head_dim, hidden);
  list.matrix(Role::kFBProj, "self_attn.f_b_proj.weight", width, kda.head_dim);
  list.matrix(Role::kBProj, "self_attn.b_proj.weight", kda.n_heads, hidden);
  list.vector(Role::kALog, "self_attn.A_log", {kda.n_heads});
  list.last().padded = true;
  list.vector(Role::kDtBias, "self_attn.dt_bias", {width});
  list.vector(Role::kQConv, "self_attn.q_conv1d.weight", {width, 1, kda.conv_size});
  list.vector(Role::kKConv, "self_attn.k_conv1d.weight", {width, 1, kda.conv_size});
  list.vector(Role::kVConv, "self_attn.v_conv1d.weight", {width, 1, kda.conv_size});
  list.vector(Role::kONorm, "self_attn.o_norm.weight", {kda.head_dim});
}

void add_mla(const Config& config, SpecList& list) {
  const MlaConfig& mla = config.mla;
  const int64_t hidden = config.hidden_size;
  const int64_t query_width = mla.n_heads * mla.qk_head_dim();
  const int64_t value_width = mla.n_heads * mla.v_head_dim;
  if (mla.q_lora_rank > 0) {
    list.matrix(Role::kQAProj, "self_attn.q_a_proj.weight", mla.q_lora_rank, hidden);
    list.vector(Role::kQALayernorm, "self_attn.q_a_layernorm.weight", {mla.q_lora_rank});
    list.matrix(Role::kQBProj, "self_attn.q_b_proj.weight", query_width, mla.q_lora_rank);
  } else {
    list.matrix(Role::kQProj, "self_attn.q_proj.weight", query_width, hidden);
  }
  list.matrix(Role::kKvAProj, "self_attn.kv_a_proj_with_mqa.weight", mla.latent_dim(), hidden);
  list.vector(Role::kKvALayernorm, "self_attn.kv_a_layernorm.weight", {mla.kv_lora_rank});
  list.matrix(Role::kKvBProj, "self_attn.kv_b_proj.weight",
              mla.n_heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank);
  if (mla.output_gate) {
    list.matrix(Role::kGProj, "self_attn.g_proj.weight", value_width, hidden);
  }
  list.matrix(Role::kOProj, "self_attn.o_proj.weight", hidden, value_width);
}

void add_moe(const Config& config, SpecList& list) {
  const MoeConfig& moe = config.moe;
  const int64_t hidden = config.hidden_size;
  list.matrix(Role::kRouter, "block_sparse_moe.gate.weight", moe.n_experts, hidden);
  list.vector(Role::kRouterBias, "block_sparse_moe.gate.e_score_correction_bias", {moe.n_experts});
  if (moe.latent_size > 0) {
    list.matrix(Role::kRoutedExpertDownProj, "block_sparse_moe.routed_expert_down_proj.weight",
                moe.latent_size, hidden);
    if (moe.latent_norm) {
      list.vector(Role::kRoutedExpertNorm, "block_sparse_moe.routed_expert_norm.weight",
                  {moe.latent_size});
    }
    list.matrix(Role::kRoutedExpertUpProj, "block_sparse_moe.routed_expert_up_proj.weight", hidden,
                moe.latent_size);
  }
  if (moe.n_shared_experts == 0) return;
  const int64_t shared = moe.n_shared_experts * moe.intermediate_size;  // one fused MLP
  list.matrix(Role::kSharedGateProj, "block_sparse_moe.shared_experts.gate_proj.weight", shared,
              hidden);
  list.matrix(Role::kSharedUpProj, "block_sparse_moe.shared_experts.up_proj.weight", shared,
              hidden);
  list.matrix(Role::kSharedDownProj, "block_sparse_moe.shared_experts.down_proj.weight", hidden,
              shared);
}

void add_dense_mlp(const Config& config, SpecList& list) {
  const int64_t hidden = config.hidden_size;
  list.matrix(Role::kMlpGateProj, "mlp.gate_proj.weight", config.intermediate_size, hidden);
  list.matrix(Role::kMlpUpProj, "mlp.up_proj.weight", config.intermediate_size, hidden);
  list.matrix(Role::kMlpDownProj, "mlp.down_proj.weight", hidden, config.intermediate_size);
}

struct PieceName {
  std::string_view suffix;
  ExpertPiece piece;
  bool packed;
};
constexpr std::array<PieceName, 9> kPieceNames = {{
    {"w1.weight_packed", ExpertPiece::kW1, true},
    {"w1.weight_scale", ExpertPiece::kW1Scale, true},
    {"w2.weight_packed", ExpertPiece::kW2, true},
    {"w2.weight_scale", ExpertPiece::kW2Scale, true},
    {"w3.weight_packed", ExpertPiece::kW3, true},
    {"w3.weight_scale", ExpertPiece::kW3Scale, true},
    {"w1.weight", ExpertPiece::kW1, false},
    {"w2.weight", ExpertPiece::kW2, false},
    {"w3.weight", ExpertPiece::kW3, false},
}};

bool skip(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

// A decimal index as names spell it (no sign, no leading zero), taken off the front of `text`.
std::optional<int32_t> take_index(std::string_view& text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  const auto digits = static_cast<size_t>(end - text.data());
  if (text.front() == '-' || (text.front() == '0' && digits > 1)) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

}  // namespace

std::vector<TensorSpec> global_tensors(const Config& config) {
  const int64_t hidden = config.hidden_size;
  SpecList list("");
  list.matrix(Role::kEmbedTokens, "model.embed_tokens.weight", config.vocab_size, hidden);
  list.matrix(Role::kLmHead, "lm_head.weight", config.vocab_size, hidden);
  list.last().optional = config.tie_word_embeddings;
  list.vector(Role::kFinalNorm, "model.norm.weight", {hidden});
  if (config.attn_res_block_size > 0) {
    list.vector(Role::kOutputAttnResNorm, "model.output_attn_res_norm.weight", {hidden});
    list.vector(Role::kOutputAttnResProj, "model.output_attn_res_proj.weight", {1, hidden});
  }
  return list.take();
}

std::vector<TensorSpec> layer_tensors(const Config& config, LayerId layer) {
  const int64_t hidden = config.hidden_size;
  SpecList list("model.layers." + std::to_string(layer.v) + ".");
  list.vector(Role::kInputLayernorm, "input_layernorm.weight", {hidden});
  list.vector(Role::kPostAttentionLayernorm, "post_attention_layernorm.weight", {hidden});
  if (config.attn_res_block_size > 0) {
    list.vector(Role::kSelfAttentionResNorm, "self_attention_res_norm.weight", {hidden});
    list.vector(Role::kSelfAttentionResProj, "self_attention_res_proj.weight", {1, hidden});
    list.vector(Role::kMlpResNorm, "mlp_res_norm.weight", {hidden});
    list.vector(Role::kMlpResProj, "mlp_res_proj.weight", {1, hidden});
  }
  config.is_kda(layer) ? add_kda(config, list) : add_mla(config, list);
  config.is_moe(layer) ? add_moe(config, list) : add_dense_mlp(config, list);
  return list.take();
}

std::optional<LayerId> parse_layer_name(std::string_view name, std::string_view prefix) {
  if (!skip(name, prefix) || !skip(name, "model.layers.")) return std::nullopt;
  const std::optional<int32_t> layer = take_index(name);
  if (!layer || !name.starts_with('.')) return std::nullopt;
  return LayerId{*layer};
}

std::optional<ExpertName> parse_expert_name(std::string_view name, std::string_view prefix) {
  if (!skip(name, prefix) || !skip(name, "model.layers.")) return std::nullopt;
  const std::optional<int32_t> layer = take_index(name);
  if (!layer || !skip(name, ".block_sparse_moe.experts.")) return std::nullopt;
  const std::optional<int32_t> expert = take_index(name);
  if (!expert || !skip(name, ".")) return std::nullopt;
  for (const PieceName& known : kPieceNames) {
    if (name == known.suffix) {
      return ExpertName{LayerId{*layer}, ExpertId{*expert}, known.piece, known.packed};
    }
  }
  return std::nullopt;
}

std::string expert_piece_name(ExpertKey key, ExpertPiece piece, bool packed) {
  std::string name = "model.layers." + std::to_string(key.layer.v) + ".block_sparse_moe.experts." +
                     std::to_string(key.expert.v) + ".";
  for (const PieceName& known : kPieceNames) {
    if (known.piece == piece && known.packed == packed) name += known.suffix;
  }
  return name;
}

}  // namespace sluice
