// Memory of a pass: what each row keeps between layers (residual, AttnRes blocks, MoE latents), and
// scratch for one tile of rows. All taken at open. One owner: the pass.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/config.h"
#include "kernels/kernels.h"

namespace sluice {

// Rows computed together inside a layer. Large enough to amortise a weight read from memory over the
// rows (64 bf16 rows reach the FMA bound), small enough that scratch is a fixed 0.1 GB on K3.
constexpr int64_t kTileRows = 64;

// Scratch of a tile; [n] floats a row unless a shape says otherwise.
enum class Scratch : uint8_t {
  kMixed,      // [hidden] AttnRes mix, then its norm: the input of a sub-layer
  kOut,        // [hidden] output of a sub-layer
  kShared,     // [hidden] shared experts
  kRawQ, kRawK, kRawV,  // [channels] before the convolution
  kQ, kK, kV,           // [channels] after it; kQ is MLA's query [heads, qk_head_dim]
  kLowRank,    // [max(q_lora, head_dim)] f_a, g_a or q_a output
  kDecay,      // [channels] f_b output, then decay
  kBeta,       // [heads]
  kAttn,       // [attention width] head outputs
  kGate,       // [attention width]
  kLatent,     // [latent_dim] kv_a output
  kAbsorbed,   // [heads, latent_dim] absorbed query
  kContext,    // [heads, kv_lora]
  kMlpGate, kMlpUp,     // [widest MLP]
  kScores, kBiased,    // [experts]
  kExpertIn, kExpertOut,    // [expert width]
  kExpertGate, kExpertUp,   // [moe_intermediate]
  kPack,       // [widest MXFP4 input] for linear()
  kHeadState,  // [threads, head_dim, head_dim], not per row
  kCount
};

// One row's use of an expert.
struct RowUse {
  int32_t expert;
  int32_t row;
  float weight;
};

class Workspace {
 public:
  Workspace(const Config& config, int64_t rows_max, int threads);

  int64_t rows_max() const { return rows_max_; }
  // Kept between layers, one row a row of the pass.
  Rows residual(int64_t n_rows) const { return {residual_.data(), n_rows, hidden_}; }
  Rows block(int64_t index, int64_t n_rows) const {
    return {blocks_.data() + index * rows_max_ * hidden_, n_rows, hidden_};
  }
  Rows expert_in(int64_t n_rows) const { return {expert_in_.data(), n_rows, expert_width_}; }
  Rows expert_sum(int64_t n_rows) const { return {expert_sum_.data(), n_rows, expert_width_}; }
  // Routing of a row: [n_experts_per_token] by falling score, and the weights.
  int32_t* expert_ids(int64_t row) { return expert_ids_.data() + row * top_k_; }
  float* expert_weights(int64_t row) { return expert_weights_.data() + row * top_k_; }

  // Lists of the layer at hand: every (expert, row) of the pass, and the distinct experts; then the rows
  // that want logits. Their capacity is taken at open.
  std::vector<RowUse>& uses() { return uses_; }
  std::vector<ExpertId>& experts() { return experts_; }
  std::vector<int64_t>& logit_rows() { return logit_rows_; }

  // `n_rows` rows of tile scratch.
  Rows tile(Scratch what, int64_t n_rows) const;
  float* head_state(int worker) const;
  std::span<float> pack() const;

  // Bytes one row takes between layers, and bytes of everything else.
  static uint64_t row_bytes(const Config& config);
  static uint64_t tile_bytes(const Config& config, int threads);

 private:
  int64_t hidden_, expert_width_, top_k_, rows_max_, head_state_floats_;
  std::array<int64_t, static_cast<size_t>(Scratch::kCount)> width_;  // floats a row
  std::array<int64_t, static_cast<size_t>(Scratch::kCount)> begin_;  // in scratch_
  FloatBuffer residual_;    // [rows_max, hidden]
  FloatBuffer blocks_;      // [blocks, rows_max, hidden]
  FloatBuffer expert_in_;   // [rows_max, expert width]
  FloatBuffer expert_sum_;  // [rows_max, expert width]
  std::vector<int32_t> expert_ids_;
  std::vector<float> expert_weights_;
  std::vector<RowUse> uses_;
  std::vector<ExpertId> experts_;
  std::vector<int64_t> logit_rows_;
  FloatBuffer scratch_;
};

}  // namespace sluice
