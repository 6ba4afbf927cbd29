// Which experts a row runs, and with what weights (spec 4.6; FORMAT 1.8). Pure function.
#pragma once

#include <cstdint>

#include "format/config.h"

namespace sluice {

// `scores` [n_experts]: sigmoid (or softmax) of the router's logits; `bias` [n_experts] enters the
// choice alone. Writes n_experts_per_token ids by falling biased score (ties: the lower id first) and
// their weights. `biased` [n_experts] is scratch.
void choose_experts(const MoeConfig& config, const float* scores, const float* bias, float* biased,
                    int32_t* ids, float* weights);

// scores [n] = softmax of logits, in place, in rising id.
void router_softmax(float* scores, int64_t n);

}  // namespace sluice
