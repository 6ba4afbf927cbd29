#include "model/workspace.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr size_t kFields = static_cast<size_t>(Scratch::kCount);

int64_t mlp_width(const Config& c) {
  int64_t widest = c.moe.n_shared_experts * c.moe.intermediate_size;
  for (int32_t layer = 0; layer < c.n_layers; ++layer) {
    if (!c.is_moe(LayerId{layer})) widest = std::max(widest, c.intermediate_size);
  }
  return widest;
}

// Floats a row of each scratch field.
std::array<int64_t, kFields> row_widths(const Config& c) {
  const int64_t channels = c.kda.n_heads * c.kda.head_dim;
  const int64_t mla_out = c.mla.n_heads * c.mla.v_head_dim;
  std::array<int64_t, kFields> width{};
  const auto set = [&width](Scratch what, int64_t floats) {
    width[static_cast<size_t>(what)] = floats;
  };
  for (const Scratch s : {Scratch::kMixed, Scratch::kOut, Scratch::kShared}) set(s, c.hidden_size);
  for (const Scratch s : {Scratch::kRawQ, Scratch::kRawK, Scratch::kRawV, Scratch::kK, Scratch::kV,
                          Scratch::kDecay}) {
    set(s, channels);
  }
  set(Scratch::kQ, std::max(channels, c.mla.n_heads * c.mla.qk_head_dim()));
  set(Scratch::kLowRank, std::max(c.mla.q_lora_rank, c.kda.head_dim));
  set(Scratch::kBeta, c.kda.n_heads);
  set(Scratch::kAttn, std::max(channels, mla_out));
  set(Scratch::kGate, std::max(channels, mla_out));
  set(Scratch::kLatent, c.mla.latent_dim());
  set(Scratch::kAbsorbed, c.mla.n_heads * c.mla.latent_dim());
  set(Scratch::kContext, c.mla.n_heads * c.mla.kv_lora_rank);
  set(Scratch::kMlpGate, mlp_width(c));
  set(Scratch::kMlpUp, mlp_width(c));
  if (c.moe.n_experts > 0) {
    set(Scratch::kScores, c.moe.n_experts);
    set(Scratch::kBiased, c.moe.n_experts);
    set(Scratch::kExpertIn, c.expert_width());
    set(Scratch::kExpertOut, c.expert_width());
    set(Scratch::kExpertGate, c.moe.intermediate_size);
    set(Scratch::kExpertUp, c.moe.intermediate_size);
    set(Scratch::kPack, std::max(c.expert_width(), c.moe.intermediate_size));
  }
  return width;
}

int64_t state_floats(const Config& c) { return c.kda.head_dim * c.kda.head_dim; }

}  // namespace

Workspace::Workspace(const Config& config, int64_t rows_max, int threads)
    : hidden_(config.hidden_size),
      expert_width_(config.expert_width()),
      top_k_(config.moe.n_experts_per_token),
      rows_max_(rows_max),
      head_state_floats_(state_floats(config)),
      width_(row_widths(config)),
      residual_(rows_max * hidden_),
      blocks_(config.n_attn_res_blocks() * rows_max * hidden_),
      expert_in_(config.moe.n_experts > 0 ? rows_max * expert_width_ : 0),
      expert_sum_(config.moe.n_experts > 0 ? rows_max * expert_width_ : 0),
      expert_ids_(static_cast<size_t>(rows_max * top_k_)),
      expert_weights_(static_cast<size_t>(rows_max * top_k_)) {
  uses_.reserve(static_cast<size_t>(rows_max * top_k_));
  experts_.reserve(static_cast<size_t>(config.moe.n_experts));
  logit_rows_.reserve(static_cast<size_t>(rows_max));
  int64_t floats = 0;
  for (size_t field = 0; field < kFields; ++field) {
    begin_[field] = floats;
    floats += width_[field] * kTileRows;
  }
  begin_[static_cast<size_t>(Scratch::kHeadState)] = floats;
  scratch_ = FloatBuffer(floats + threads * head_state_floats_);
}

Rows Workspace::tile(Scratch what, int64_t n_rows) const {
  DCHECK(n_rows <= kTileRows);
  const auto field = static_cast<size_t>(what);
  return {scratch_.data() + begin_[field], n_rows, width_[field]};
}

float* Workspace::head_state(int worker) const {
  return scratch_.data() + begin_[static_cast<size_t>(Scratch::kHeadState)] +
         worker * head_state_floats_;
}

std::span<float> Workspace::pack() const {
  const Rows rows = tile(Scratch::kPack, kTileRows);
  return {rows.data, static_cast<size_t>(rows.n * rows.stride)};
}

uint64_t Workspace::row_bytes(const Config& c) {
  int64_t floats = (1 + c.n_attn_res_blocks()) * c.hidden_size;
  if (c.moe.n_experts > 0) floats += 2 * c.expert_width() + 5 * c.moe.n_experts_per_token;
  floats += 2;  // its place among the rows that want logits
  return static_cast<uint64_t>(floats) * sizeof(float);
}

uint64_t Workspace::tile_bytes(const Config& c, int threads) {
  int64_t floats = threads * state_floats(c);
  for (const int64_t width : row_widths(c)) floats += width * kTileRows;
  return static_cast<uint64_t>(floats) * sizeof(float);
}

}  // namespace sluice
