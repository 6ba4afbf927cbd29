// Latent mixture of experts (spec 4.6; FORMAT 1.8, 1.9): all rows of the pass share each expert's bytes.
#pragma once

#include "base/error.h"
#include "model/layer.h"
#include "model/pass.h"
#include "store/expert_store.h"

namespace sluice {

// Routes the rows of `tile` and fills their latents and zeroed sums in the workspace. `x` is the
// normalised FFN input [tile rows, hidden].
void moe_route(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x);

// Runs the union of the chosen experts over all rows of the pass, in rising id. kIo, kCorrupt: a read.
Status moe_experts(const Pass& pass, const Layer& layer, const ExpertLayout& layout,
                   ExpertStore& experts);

// out[tile rows, hidden] = the experts' sums, normed and projected up, plus the shared experts of `x`.
void moe_output(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x, Rows out);

}  // namespace sluice
