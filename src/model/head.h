// The end of the model (spec 4.0): last AttnRes mix, final norm, logits.
#pragma once

#include "model/batch.h"
#include "model/pass.h"
#include "model/weights.h"

namespace sluice {

// logits [batch.n_logits(), vocab] of the rows that want them, in batch order.
void compute_logits(const Pass& pass, const Batch& batch, const Weights& weights, Rows logits);

}  // namespace sluice
