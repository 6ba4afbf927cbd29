#include "model/attn_res.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "kernels/math.h"

namespace sluice {

void attn_res_mix_row(const Pass& pass, int64_t row, int64_t n_blocks, const float* weights,
                      float* out, float* probabilities) {
  const int64_t hidden = pass.config.hidden_size;
  const auto source = [&](int64_t i) {
    return i < n_blocks ? pass.workspace.block(i, pass.n_rows).row(row)
                        : pass.workspace.residual(pass.n_rows).row(row);
  };
  std::array<float, kAttnResSourcesMax> p;
  float max = -INFINITY;
  for (int64_t i = 0; i <= n_blocks; ++i) {
    const float* v = source(i);
    const float mean = pass.k().dot(v, v, hidden) / static_cast<float>(hidden);
    const float inverse_rms = 1.0f / std::sqrt(mean + pass.config.rms_norm_eps);
    float& score = p[static_cast<size_t>(i)];
    score = pass.k().dot(weights, v, hidden) * inverse_rms;
    max = std::max(max, score);
  }
  float sum = 0.0f;
  for (int64_t i = 0; i <= n_blocks; ++i) {
    float& e = p[static_cast<size_t>(i)];
    e = exp_f32(e - max);
    sum = sum + e;
  }
  std::fill_n(out, hidden, 0.0f);
  for (int64_t i = 0; i <= n_blocks; ++i) {
    probabilities[i] = p[static_cast<size_t>(i)] / sum;
    pass.k().axpy(out, probabilities[i], source(i), hidden);
  }
}

void attn_res_mix(const Pass& pass, const Tile& tile, int64_t n_blocks, const float* weights, Rows out,
                  LayerId layer, const char* place) {
  if (n_blocks == 0) {
    const Rows residual = pass.rows_of(tile, pass.workspace.residual(pass.n_rows));
    for (int64_t i = 0; i < tile.n_rows; ++i) {
      std::copy_n(residual.row(i), pass.config.hidden_size, out.row(i));
    }
    return;
  }
  float* captured = nullptr;
  if (pass.capture != nullptr) {
    const std::string name = "attnres." + std::to_string(layer.v) + "." + place;
    captured = pass.capture->floats(name, {pass.n_rows, n_blocks + 1});
  }
  for_each_row(pass.compute, tile.n_rows, [&](int64_t i) {
    std::array<float, kAttnResSourcesMax> p;
    const int64_t row = tile.first_row + i;
    attn_res_mix_row(pass, row, n_blocks, weights, out.row(i), p.data());
    if (captured != nullptr) std::copy_n(p.data(), n_blocks + 1, captured + row * (n_blocks + 1));
  });
}

}  // namespace sluice
