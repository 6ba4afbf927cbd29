// Multi-head latent attention (spec 4.5; FORMAT 1.7): no positions, gated, always in the absorbed form
// over a cache of latent rows.
#pragma once

#include "model/layer.h"
#include "model/pass.h"

namespace sluice {

// out[tile rows, hidden] = MLA of `x` [tile rows, hidden], the normalised layer input. Appends the rows'
// latents to their states, behind the committed length.
void mla(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x, Rows out);

}  // namespace sluice
