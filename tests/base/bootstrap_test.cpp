#include "base/bootstrap.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sluice {
namespace {

TEST(Bootstrap, TheMedianIsTheMiddleOrTheMeanOfTheTwoMiddleValues) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
}

TEST(Bootstrap, OneSampleHasOneInterval) {
  const std::vector<double> sample = {1, 5, 2, 8, 3};
  const Interval a = bootstrap_median(sample), b = bootstrap_median(sample);
  EXPECT_EQ(a.lo, b.lo);
  EXPECT_EQ(a.hi, b.hi);
  EXPECT_LE(a.lo, a.median);
  EXPECT_LE(a.median, a.hi);
}

TEST(Bootstrap, EqualValuesLeaveNoDoubt) {
  const Interval interval = bootstrap_median(std::vector<double>(30, 0.95));
  EXPECT_EQ(interval.lo, 0.95);
  EXPECT_EQ(interval.hi, 0.95);
}

// Nine in ten samples of a uniform distribution must have the true median in their interval; of 400 the
// share strays by less than 5 % (three standard deviations).
TEST(Bootstrap, TheIntervalHoldsTheTrueMedianNineTimesInTen) {
  std::mt19937_64 random(7);
  int held = 0;
  constexpr int kSamples = 400;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> sample(31);
    for (double& value : sample) value = static_cast<double>(random() >> 11) * 0x1p-53;
    const Interval interval = bootstrap_median(sample);
    held += interval.lo <= 0.5 && 0.5 <= interval.hi;
  }
  EXPECT_NEAR(static_cast<double>(held) / kSamples, 0.90, 0.05);
}

}  // namespace
}  // namespace sluice
