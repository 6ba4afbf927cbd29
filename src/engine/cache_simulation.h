// What a cache of experts would have held: replays the routes of a text against a policy of eviction
// and a size. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice {

// experts[token][layer]: the routed experts of that token, as the file of routes has them.
struct Routes {
  int64_t n_layers = 0;
  int64_t n_experts = 0;  // of one layer: one more than the largest id
  std::vector<std::vector<std::vector<int32_t>>> experts = {};
  int64_t n_choices() const;  // of all tokens and layers
};

// Lines {"tok": n, "layers": [[ids of layer 0], ...]}; kInvalid names `name` and the line.
Result<Routes> parse_routes(std::string_view text, std::string_view name);

enum class CachePolicy {
  kLru,       // out goes what was used longest ago
  kLfuDecay,  // out goes what was used least, a use counting half after 32 tokens
  kBelady,    // out goes what is wanted again last: no policy can do better (Belady 1966)
};
constexpr CachePolicy kCachePolicies[] = {CachePolicy::kLru, CachePolicy::kLfuDecay,
                                          CachePolicy::kBelady};
const char* cache_policy_name(CachePolicy policy);

// Hits of a cache of `n_slots` experts of all layers, empty at first, that takes in every expert that
// it missed.
int64_t simulate_cache(const Routes& routes, CachePolicy policy, int64_t n_slots);

}  // namespace sluice
