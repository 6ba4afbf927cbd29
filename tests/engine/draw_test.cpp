// The sampler's draws against the exact distribution, by Pearson's chi-square. The distribution is
// worked out here from the definition in sampler.h, in long double and with libm, by sorting; seeds
// are fixed, so a run passes or fails always. Both tails count: draws that fit too well are not
// independent. That the bound can be exceeded is a test of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/sampler.h"

namespace sluice {
namespace {

constexpr int kVocab = 200;
constexpr int kDraws = 100000;

// Quarters, so that ties are frequent, also at the edge of a top-k.
std::vector<float> quarter_logits() {
  std::mt19937 bits(20261206);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = static_cast<float>(bits() % 24) * 0.25f - 3.0f;
  return logits;
}

// The probability of each id by steps 4 to 8 of sampler.h, penalties and bias left out.
std::vector<long double> exact(const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  const auto weight = [&](size_t id) {
    return std::exp((static_cast<long double>(logits[id]) - logits[order[0]]) / params.temperature);
  };
  if (params.top_k > 0) {
    order.resize(std::min(order.size(), static_cast<size_t>(params.top_k)));
  }
  long double mass = 0;
  for (const size_t id : order) mass += weight(id);
  if (params.top_p < 1) {
    long double sum = 0;
    size_t kept = 0;
    while (kept < order.size() && sum < params.top_p * mass) sum += weight(order[kept++]);
    order.resize(kept);
  }
  std::erase_if(order, [&](size_t id) { return weight(id) < params.min_p; });
  mass = 0;
  for (const size_t id : order) mass += weight(id);
  std::vector<long double> probability(logits.size(), 0);
  for (const size_t id : order) probability[id] = weight(id) / mass;
  return probability;
}

// How far a chi-square statistic lies from its mean, as a normal deviate (Wilson and Hilferty).
// Cells that expect fewer than ten draws are counted as one.
long double deviate(const std::vector<int>& counts, const std::vector<long double>& probability) {
  int draws = 0;
  for (const int count : counts) draws += count;
  long double statistic = 0, rare_expected = 0, rare_count = 0;
  int cells = 0;
  const auto add = [&](long double count, long double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const long double expected = probability[i] * draws;
    if (probability[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " was cut off, yet drawn";
    } else if (expected < 10) {
      rare_expected += expected;
      rare_count += counts[i];
    } else {
      add(counts[i], expected);
    }
  }
  if (rare_expected > 0) add(rare_count, rare_expected);
  const long double freedom = cells - 1;
  const long double spread = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread);
}

// One in 30,000 honest statistics lies beyond this on either side.
constexpr long double kBound = 4;

// What varies between the draws of one count.
enum class Along { kPosition, kSeed, kChoice };

std::vector<int> count_draws(SamplingParams params, const std::vector<float>& logits, Along along) {
  std::vector<int> counts(logits.size());
  const auto vocab = static_cast<int64_t>(logits.size());
  Sampler fixed(params, vocab, /*choice=*/0);
  const auto draw = [&](uint64_t n) {
    if (along == Along::kPosition) return fixed.draw(logits, n).value();
    if (along == Along::kChoice) return Sampler(params, vocab, n).draw(logits, 7).value();
    params.seed = n;
    return Sampler(params, vocab, 0).draw(logits, 7).value();
  };
  for (uint64_t n = 0; n < kDraws; ++n) ++counts[static_cast<size_t>(draw(n))];
  return counts;
}

void expect_exact(const SamplingParams& params, Along along = Along::kPosition) {
  const std::vector<float> logits = quarter_logits();
  EXPECT_LT(std::abs(deviate(count_draws(params, logits, along), exact(params, logits))), kBound);
}

TEST(Draw, FollowsTheSoftmaxAtAnyTemperature) {
  for (const double temperature : {0.3, 0.7, 1.0, 1.7, 50.0}) {
    SCOPED_TRACE(temperature);
    expect_exact({.temperature = temperature, .seed = 1});
  }
}

TEST(Draw, FollowsTheRestThatTopKLeaves) {
  for (const int64_t k : {2, 7, 31, 199, 200, 1000}) {
    SCOPED_TRACE(k);
    expect_exact({.temperature = 1.0, .top_k = k, .seed = 2});
  }
}

TEST(Draw, FollowsTheRestThatTopPLeaves) {
  for (const double p : {0.11, 0.5, 0.9, 0.999}) {
    SCOPED_TRACE(p);
    expect_exact({.temperature = 1.0, .top_p = p, .seed = 3});
  }
}

TEST(Draw, FollowsTheRestThatMinPLeaves) {
  for (const double p : {0.01, 0.1, 0.51}) {
    SCOPED_TRACE(p);
    expect_exact({.temperature = 1.0, .min_p = p, .seed = 4});
  }
}

TEST(Draw, FollowsTheRestThatAllCutsTogetherLeave) {
  expect_exact({.temperature = 1.3, .top_k = 60, .top_p = 0.93, .min_p = 0.12, .seed = 5});
  expect_exact({.temperature = 0.6, .top_k = 20, .top_p = 0.8, .min_p = 0.3, .seed = 6});
}

TEST(Draw, FollowsTheSoftmaxAlongSeedsAndAlongChoices) {
  expect_exact({.temperature = 1.0}, Along::kSeed);
  expect_exact({.temperature = 1.0}, Along::kChoice);
}

TEST(Draw, NeighbouringPositionsAreIndependent) {
  const std::vector<float> logits(12, 0.0f);
  Sampler sampler({.temperature = 1.0, .seed = 8}, 12, /*choice=*/0);
  std::vector<int> pairs(144);
  for (uint64_t n = 0; n < kDraws; ++n) {
    const auto first = sampler.draw(logits, 2 * n).value();
    const auto second = sampler.draw(logits, 2 * n + 1).value();
    ++pairs[static_cast<size_t>(first * 12 + second)];
  }
  EXPECT_LT(std::abs(deviate(pairs, std::vector<long double>(144, 1.0L / 144))), kBound);
}

TEST(Draw, AThirtiethMoreTemperatureIsFoundOut) {
  const std::vector<float> logits = quarter_logits();
  const auto counts = count_draws({.temperature = 1.033, .seed = 1}, logits, Along::kPosition);
  EXPECT_GT(deviate(counts, exact({.temperature = 1.0}, logits)), kBound);
}

}  // namespace
}  // namespace sluice
