#include "engine/cache_simulation.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice {
namespace {

Routes one_layer(const std::vector<int32_t>& ids) {
  Routes routes{.n_layers = 1, .n_experts = 16};
  for (const int32_t id : ids) routes.experts.push_back({{id}});
  return routes;
}

TEST(CacheSimulation, LruForgetsWhatWasUsedLongestAgo) {
  EXPECT_EQ(simulate_cache(one_layer({1, 2, 1, 3, 1, 2}), CachePolicy::kLru, 2), 2);
}

TEST(CacheSimulation, LruHoldsNothingOfALoopLargerThanItself) {
  EXPECT_EQ(simulate_cache(one_layer({1, 2, 3, 1, 2, 3, 1, 2, 3}), CachePolicy::kLru, 2), 0);
}

TEST(CacheSimulation, LfuKeepsWhatIsUsedOftenAndForgetsItInTime) {
  std::vector<int32_t> ids(10, 1);
  for (const int32_t id : {2, 3, 4, 5, 1}) ids.push_back(id);
  EXPECT_EQ(simulate_cache(one_layer(ids), CachePolicy::kLfuDecay, 2), 10);  // 9, and the last
  ids.assign(4, 1);
  for (int i = 0; i < 200; ++i) ids.push_back(2), ids.push_back(3);
  const int64_t hits = simulate_cache(one_layer(ids), CachePolicy::kLfuDecay, 2);
  EXPECT_GT(hits, 380);  // 2 and 3 have driven 1 out
  ids.push_back(1);
  EXPECT_EQ(simulate_cache(one_layer(ids), CachePolicy::kLfuDecay, 2), hits);
}

TEST(CacheSimulation, BeladyKeepsWhatIsWantedNext) {
  EXPECT_EQ(simulate_cache(one_layer({1, 2, 3, 1, 2, 3, 1, 2, 3}), CachePolicy::kBelady, 2), 3);
}

TEST(CacheSimulation, NoPolicyBeatsBeladyAndACacheOfAllMissesEachOnce) {
  std::mt19937 random(3);
  Routes routes{.n_layers = 3, .n_experts = 16};
  std::vector<bool> seen(48);
  int64_t distinct = 0;
  for (int token = 0; token < 200; ++token) {
    auto& layers = routes.experts.emplace_back(3);
    for (size_t layer = 0; layer < 3; ++layer) {
      const auto id = static_cast<int32_t>(random() % 16 * (random() % 2));
      layers[layer] = {id};
      const size_t index = layer * 16 + static_cast<size_t>(id);
      distinct += !seen[index];
      seen[index] = true;
    }
  }
  for (int64_t slots = 0; slots <= 48; slots += 4) {
    const int64_t best = simulate_cache(routes, CachePolicy::kBelady, slots);
    for (const CachePolicy policy : kCachePolicies) {
      const int64_t hits = simulate_cache(routes, policy, slots);
      EXPECT_LE(hits, best) << cache_policy_name(policy) << " " << slots;
      if (slots == 0) { EXPECT_EQ(hits, 0); }
      if (slots == 48) { EXPECT_EQ(hits, routes.n_choices() - distinct); }
    }
  }
}

TEST(CacheSimulation, ReadsRoutesAndNamesTheLineThatIsNone) {
  const auto routes = parse_routes("{\"tok\": 0, \"layers\": [[1, 2], [3]]}\n\n{\"tok\": 1, \"layers\": [[0], []]}", "f");
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes.value().n_layers, 2);
  EXPECT_EQ(routes.value().n_experts, 4);
  EXPECT_EQ(routes.value().n_choices(), 4);
  for (const char* bad : {"{}", "[]", "{\"layers\": [1]}", "{\"layers\": [[-1]]}",
                          "{\"layers\": [[\"a\"]]}", "{\"layers\": [[99999999999]]}", "x"}) {
    const auto refused = parse_routes(std::string("{\"layers\": [[1]]}\n") + bad, "routes.jsonl");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(refused.error().what.find("routes.jsonl line 2"), std::string::npos) << bad;
  }
  EXPECT_FALSE(parse_routes("", "f").ok());
}

}  // namespace
}  // namespace sluice
