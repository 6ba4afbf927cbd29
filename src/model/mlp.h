// The gated MLPs (spec 4.7, 4.8): dense layers and shared experts.
#pragma once

#include "model/layer.h"
#include "model/pass.h"

namespace sluice {

// gate[rows] = act(gate, up): SiTU-GLU or SwiGLU, as the config says, over `width` columns.
void glu(const Pass& pass, Rows gate, ConstRows up, int64_t width);

// out = act(x gateᵀ, x upᵀ) downᵀ for at most kTileRows rows.
void mlp(const Pass& pass, const Matrix& gate, const Matrix& up, const Matrix& down, ConstRows x,
         Rows out);

}  // namespace sluice
