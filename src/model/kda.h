// Kimi Delta Attention (spec 4.3, 4.4; FORMAT 1.6): gated delta rule, always recurrent, head by head.
#pragma once

#include "model/layer.h"
#include "model/pass.h"

namespace sluice {

// out[tile rows, hidden] = KDA of `x` [tile rows, hidden], the normalised layer input. Rows that stay
// advance their state's spare copy; tentative rows fill its log.
void kda(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x, Rows out);

}  // namespace sluice
