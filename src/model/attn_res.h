// Attention residuals (spec 4.2): every sub-layer reads a softmax mixture of the block snapshots and
// the running sum of its row.
#pragma once

#include "model/pass.h"

namespace sluice {

// out = mixture of the first `n_blocks` blocks and the residual of each row of `tile`, by the score
// weights `weights` [hidden] (norm * proj). Without blocks it is the residual itself. `out` may not
// alias them. A pass that captures keeps the probabilities as "attnres.<layer>.<place>" [rows, n_blocks + 1].
void attn_res_mix(const Pass& pass, const Tile& tile, int64_t n_blocks, const float* weights, Rows out,
                  LayerId layer, const char* place);

// The same for single rows: out[i] mixes row rows[i] of the pass.
void attn_res_mix_row(const Pass& pass, int64_t row, int64_t n_blocks, const float* weights,
                      float* out, float* probabilities);

// Sources a mixture can have: each layer may begin a block (K3 has 8), and the running sum.
constexpr int64_t kAttnResSourcesMax = kLayersMax + 1;

}  // namespace sluice
