#include "model/router.h"

#include "kernels/math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sluice {
namespace {

// Ids of the `k` largest of values[0..n), larger first, ties to the lower id. Scores of -inf are chosen
// last; NaN never beats a number.
void top_k(const float* values, int64_t n, int64_t k, int32_t* ids) {
  int64_t found = 0;
  for (int32_t id = 0; id < n; ++id) {
    int64_t at = found;
    while (at > 0 && values[id] > values[ids[at - 1]]) --at;
    if (at == k) continue;
    found = std::min(found + 1, k);
    std::copy_backward(ids + at, ids + found - 1, ids + found);
    ids[at] = id;
  }
}

// Leaves the topk_group best groups; the others become -inf (only models with several groups).
void mask_groups(const MoeConfig& config, float* biased) {
  const int64_t group_size = config.n_experts / config.n_groups;
  std::vector<float> group_scores;
  for (int64_t g = 0; g < config.n_groups; ++g) {
    float first = -INFINITY, second = -INFINITY;
    for (int64_t e = g * group_size; e < (g + 1) * group_size; ++e) {
      second = std::max(second, std::min(first, biased[e]));
      first = std::max(first, biased[e]);
    }
    group_scores.push_back(group_size > 1 ? first + second : first);
  }
  std::vector<int32_t> kept(static_cast<size_t>(config.topk_group));
  top_k(group_scores.data(), config.n_groups, config.topk_group, kept.data());
  for (int32_t g = 0; g < config.n_groups; ++g) {
    if (std::ranges::find(kept, g) != kept.end()) continue;
    std::fill_n(biased + g * group_size, group_size, -INFINITY);
  }
}

}  // namespace

void choose_experts(const MoeConfig& config, const float* scores, const float* bias, float* biased,
                    int32_t* ids, float* weights) {
  for (int64_t e = 0; e < config.n_experts; ++e) biased[e] = scores[e] + bias[e];
  if (config.n_groups > config.topk_group) mask_groups(config, biased);
  const int64_t k = config.n_experts_per_token;
  top_k(biased, config.n_experts, k, ids);

  float divisor = 1.0f;
  if (config.renormalize) {
    // The chosen scores are added in rising id; `biased` has served, and marks them.
    std::fill_n(biased, config.n_experts, 0.0f);
    for (int64_t i = 0; i < k; ++i) biased[ids[i]] = 1.0f;
    float sum = 0.0f;
    for (int64_t e = 0; e < config.n_experts; ++e) {
      if (biased[e] == 1.0f) sum = sum + scores[e];
    }
    divisor = sum + 1e-20f;
  }
  for (int64_t i = 0; i < k; ++i) {
    weights[i] = scores[ids[i]] / divisor * config.routed_scaling_factor;
  }
}

void router_softmax(float* scores, int64_t n) {
  float max = -INFINITY;
  for (int64_t e = 0; e < n; ++e) max = std::max(max, scores[e]);
  float sum = 0.0f;
  for (int64_t e = 0; e < n; ++e) {
    scores[e] = exp_f32(scores[e] - max);
    sum = sum + scores[e];
  }
  for (int64_t e = 0; e < n; ++e) scores[e] = scores[e] / sum;
}

}  // namespace sluice
