#include "engine/cache_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/json.h"

namespace sluice {
namespace {

constexpr double kHalfLifeTokens = 32.0;
constexpr int32_t kExpertMax = 1 << 20;

// One choice of one expert, in the order of time.
struct Choice {
  int64_t expert = 0;  // numbered over all layers
  int64_t token = 0;
};

std::vector<Choice> choices_of(const Routes& routes) {
  std::vector<Choice> choices;
  for (size_t token = 0; token < routes.experts.size(); ++token) {
    const auto& layers = routes.experts[token];
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      for (const int32_t expert : layers[layer]) {
        choices.push_back({static_cast<int64_t>(layer) * routes.n_experts + expert,
                           static_cast<int64_t>(token)});
      }
    }
  }
  return choices;
}

// For each choice, the index of the next choice of the same expert.
std::vector<size_t> next_uses(const std::vector<Choice>& choices) {
  std::vector<size_t> next(choices.size(), std::numeric_limits<size_t>::max());
  std::unordered_map<int64_t, size_t> seen;
  for (size_t i = choices.size(); i-- > 0;) {
    if (const auto found = seen.find(choices[i].expert); found != seen.end()) {
      next[i] = found->second;
    }
    seen[choices[i].expert] = i;
  }
  return next;
}

// The worth of each expert to a policy; the least worthy one present goes.
class Worth {
 public:
  Worth(CachePolicy policy, const std::vector<Choice>& choices) : policy_(policy) {
    if (policy == CachePolicy::kBelady) next_ = next_uses(choices);
  }

  double after(const Choice& choice, size_t index) {
    if (policy_ == CachePolicy::kLru) return static_cast<double>(index);
    if (policy_ == CachePolicy::kBelady) return -static_cast<double>(next_[index]);
    // All counts halve alike, so instead of them a use's weight grows; log2 keeps it in range.
    const double use = static_cast<double>(choice.token) / kHalfLifeTokens;
    const auto [found, fresh] = log2_uses_.try_emplace(choice.expert, use);
    double& uses = found->second;
    if (!fresh) {
      uses = std::max(uses, use) + std::log2(1.0 + std::exp2(-std::abs(uses - use)));
    }
    return uses;
  }

 private:
  const CachePolicy policy_;
  std::vector<size_t> next_;
  std::unordered_map<int64_t, double> log2_uses_;
};

Result<std::vector<int32_t>> parse_layer(const Json& ids) {
  std::vector<int32_t> experts;
  if (!ids.is_array()) return Error{Code::kInvalid, "a layer is no list"};
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id < 0 || id >= kExpertMax) {
      return Error{Code::kInvalid, "\"" + id.dump() + "\" is no expert"};
    }
    experts.push_back(id.get<int32_t>());
  }
  return experts;
}

Status parse_token(std::string_view line, std::string_view name, Routes& routes) {
  TRY(const Json json, parse_json(line, name));
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array()) {
    return Error{Code::kInvalid, "has no list \"layers\""};
  }
  auto& layers = routes.experts.emplace_back();
  for (const Json& ids : json["layers"]) {
    TRY(layers.emplace_back(), parse_layer(ids));
    for (const int32_t id : layers.back()) {
      routes.n_experts = std::max<int64_t>(routes.n_experts, id + 1);
    }
  }
  routes.n_layers = std::max(routes.n_layers, static_cast<int64_t>(layers.size()));
  return Ok{};
}

}  // namespace

int64_t Routes::n_choices() const {
  int64_t n = 0;
  for (const auto& layers : experts) {
    for (const auto& ids : layers) n += static_cast<int64_t>(ids.size());
  }
  return n;
}

Result<Routes> parse_routes(std::string_view text, std::string_view name) {
  Routes routes;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const Status parsed = parse_token(line, name, routes);
    if (!parsed.ok()) {
      return Error{Code::kInvalid, std::string(name) + " line " + std::to_string(number) + ": " +
                                       parsed.error().what};
    }
  }
  if (routes.n_choices() == 0) {
    return Error{Code::kInvalid, std::string(name) + ": holds no routes; run --trace-routes writes them"};
  }
  return routes;
}

const char* cache_policy_name(CachePolicy policy) {
  switch (policy) {
    case CachePolicy::kLru:
      return "lru";
    case CachePolicy::kLfuDecay:
      return "lfu-decay";
    case CachePolicy::kBelady:
      return "belady";
  }
  CHECK(false);
}

int64_t simulate_cache(const Routes& routes, CachePolicy policy, int64_t n_slots) {
  const std::vector<Choice> choices = choices_of(routes);
  Worth worth(policy, choices);
  std::unordered_map<int64_t, double> present;
  std::set<std::pair<double, int64_t>> by_worth;
  int64_t hits = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    const int64_t expert = choices[i].expert;
    const double now = worth.after(choices[i], i);
    if (const auto found = present.find(expert); found != present.end()) {
      ++hits;
      by_worth.erase({found->second, expert});
    } else if (n_slots == 0) {
      continue;
    } else if (static_cast<int64_t>(present.size()) == n_slots) {
      present.erase(by_worth.begin()->second);
      by_worth.erase(by_worth.begin());
    }
    present[expert] = now;
    by_worth.emplace(now, expert);
  }
  return hits;
}

}  // namespace sluice
