#include "model/head.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "model/attn_res.h"

namespace sluice {
namespace {

// Pass rows that want logits, in batch order.
std::span<const int64_t> wanted_rows(const Pass& pass, const Batch& batch) {
  std::vector<int64_t>& rows = pass.workspace.logit_rows();
  rows.clear();
  for (size_t i = 0; i < pass.sequences.size(); ++i) {
    const int64_t end = pass.sequences[i].first_row + pass.sequences[i].n_rows;
    for (int64_t row = end - batch.sequences[i].n_logits; row < end; ++row) rows.push_back(row);
  }
  return rows;
}

// x = final norm of the last mix of one row of the pass.
void final_row(const Pass& pass, const Weights& weights, int64_t row, float* x, float* captured) {
  const int64_t n_blocks = pass.config.n_attn_res_blocks();
  if (n_blocks == 0) {
    std::copy_n(pass.workspace.residual(pass.n_rows).row(row), pass.config.hidden_size, x);
  } else {
    std::array<float, kAttnResSourcesMax> p;
    attn_res_mix_row(pass, row, n_blocks, weights.output_attn_res.data(), x, p.data());
    if (captured != nullptr) std::copy_n(p.data(), n_blocks + 1, captured + row * (n_blocks + 1));
  }
  pass.k().rms_norm(x, x, weights.final_norm.data(), pass.config.hidden_size,
                    pass.config.rms_norm_eps);
}

}  // namespace

void compute_logits(const Pass& pass, const Batch& batch, const Weights& weights, Rows logits) {
  const std::span<const int64_t> wanted = wanted_rows(pass, batch);
  const auto n_wanted = static_cast<int64_t>(wanted.size());
  const int64_t n_blocks = pass.config.n_attn_res_blocks();
  float* captured = pass.capture == nullptr || n_blocks == 0
                        ? nullptr
                        : pass.capture->floats("attnres.output", {pass.n_rows, n_blocks + 1});
  for (int64_t first = 0; first < n_wanted; first += kTileRows) {
    const int64_t n = std::min(kTileRows, n_wanted - first);
    const Rows x = pass.workspace.tile(Scratch::kMixed, n);
    for_each_row(pass.compute, n, [&](int64_t i) {
      final_row(pass, weights, wanted[static_cast<size_t>(first + i)], x.row(i), captured);
    });
    linear(pass.compute, {logits.row(first), n, logits.stride}, weights.head, x);
  }
  if (pass.capture == nullptr) return;
  float* all = pass.capture->floats("logits", {n_wanted, pass.config.vocab_size});
  for (int64_t i = 0; i < n_wanted; ++i) {
    std::copy_n(logits.row(i), pass.config.vocab_size, all + i * pass.config.vocab_size);
  }
}

}  // namespace sluice
