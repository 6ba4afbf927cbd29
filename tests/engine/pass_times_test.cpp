// The line through the times of passes.
#include "engine/pass_times.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(PassTimes, KnowsNothingBeforeTheFirstPass) {
  const PassTimes times;
  EXPECT_FALSE(times.known());
  EXPECT_EQ(times.predict_s(10), 0.0);
  EXPECT_EQ(times.rows_within(1.0, 64), 64);
}

TEST(PassTimes, FindsTheLine) {
  PassTimes times;
  for (const int64_t rows : {1, 10, 100, 7}) times.add(rows, 2.0 + 0.5 * static_cast<double>(rows));
  EXPECT_NEAR(times.predict_s(20), 12.0, 1e-9);
  EXPECT_NEAR(times.predict_s(1), 2.5, 1e-9);
  EXPECT_EQ(times.rows_within(7.1, 1), 10);
  EXPECT_EQ(times.rows_within(0.5, 3), 3);
}

TEST(PassTimes, PassesOfOneSizeTellNothingOfOthers) {
  PassTimes times;
  for (int i = 0; i < 5; ++i) times.add(4, 0.3);
  EXPECT_NEAR(times.predict_s(1000), 0.3, 1e-12);
  EXPECT_EQ(times.rows_within(10.0, 64), 64);
}

TEST(PassTimes, NeverGoesBelowZero) {
  PassTimes times;
  times.add(1, 0.01);
  times.add(100, 10.0);
  EXPECT_GE(times.predict_s(1), 0.0);
  PassTimes falling;
  falling.add(1, 10.0);
  falling.add(100, 1.0);
  EXPECT_GE(falling.predict_s(1000), 0.0);
}

TEST(PassTimes, FollowsAMachineThatChanges) {
  PassTimes times;
  for (int i = 0; i < 100; ++i) times.add(1 + i % 9, 1.0);
  for (int i = 0; i < 200; ++i) times.add(1 + i % 9, 3.0);
  EXPECT_NEAR(times.predict_s(5), 3.0, 0.01);
}

}  // namespace
}  // namespace sluice
