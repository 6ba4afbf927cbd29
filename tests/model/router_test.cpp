// The choice of experts (FORMAT 1.8) on hand-made scores.
#include "model/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sluice {
namespace {

struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Choice choose(const MoeConfig& config, const std::vector<float>& scores,
              const std::vector<float>& bias) {
  std::vector<float> biased(scores.size());
  Choice choice{std::vector<int32_t>(static_cast<size_t>(config.n_experts_per_token)),
                std::vector<float>(static_cast<size_t>(config.n_experts_per_token))};
  choose_experts(config, scores.data(), bias.data(), biased.data(), choice.ids.data(),
                 choice.weights.data());
  return choice;
}

MoeConfig four_experts(int64_t k) {
  MoeConfig config;
  config.n_experts = 4;
  config.n_experts_per_token = k;
  return config;
}

TEST(Router, TiesGoToTheLowerId) {
  const Choice choice = choose(four_experts(2), {0.5f, 0.5f, 0.5f, 0.5f}, {0, 0, 0, 0});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{0, 1}));
}

TEST(Router, TheBiasChoosesButDoesNotWeigh) {
  const Choice choice = choose(four_experts(2), {0.8f, 0.6f, 0.2f, 0.1f}, {0, 0, 0, 9});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{3, 0}));
  const float sum = 0.8f + 0.1f + 1e-20f;
  EXPECT_EQ(choice.weights, (std::vector<float>{0.1f / sum, 0.8f / sum}));
}

TEST(Router, WithoutRenormalisingTheWeightsAreTheScaledScores) {
  MoeConfig config = four_experts(2);
  config.renormalize = false;
  config.routed_scaling_factor = 2.446f;
  const Choice choice = choose(config, {0.1f, 0.4f, 0.3f, 0.2f}, {0, 0, 0, 0});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(choice.weights, (std::vector<float>{0.4f * 2.446f, 0.3f * 2.446f}));
}

TEST(Router, GroupsOutsideTheBestAreNotChosenFrom) {
  MoeConfig config;
  config.n_experts = 6;
  config.n_experts_per_token = 2;
  config.n_groups = 3;
  config.topk_group = 1;
  // Group 0 has the single best expert; group 1 the best pair.
  const Choice choice =
      choose(config, {0.9f, 0.1f, 0.6f, 0.7f, 0.2f, 0.3f}, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(choice.ids, (std::vector<int32_t>{3, 2}));
}

TEST(Router, NotANumberNeverCrashesAndIdsStayInRange) {
  const Choice choice = choose(four_experts(3), {NAN, 0.5f, NAN, NAN}, {0, 0, 0, 0});
  for (const int32_t id : choice.ids) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 4);
  }
}

TEST(Router, SoftmaxSumsToOne) {
  std::vector<float> scores = {1.0f, 2.0f, 3.0f};
  router_softmax(scores.data(), 3);
  EXPECT_NEAR(scores[0] + scores[1] + scores[2], 1.0f, 1e-6f);
  EXPECT_NEAR(scores[2], 0.66524096f, 1e-6f);
}

}  // namespace
}  // namespace sluice
