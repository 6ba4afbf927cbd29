// Results carry a value or an error, and TRY passes errors on.
#include "base/error.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace sluice {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Code::kInvalid, "odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  TRY(const int once, half(value));
  TRY(const int twice, half(once));
  return twice;
}

Status check_half(int value, bool* reached) {
  TRY_OK(half(value));
  *reached = true;
  return Ok{};
}

TEST(Error, TryGivesTheValueOrReturnsTheFirstError) {
  ASSERT_TRUE(quarter(12).ok());
  EXPECT_EQ(quarter(12).value(), 3);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().what, "odd");
  EXPECT_EQ(quarter(6).error().code, Code::kInvalid);
}

TEST(Error, TryOkStopsAtAnErrorAndGoesOnWithoutOne) {
  bool reached = false;
  EXPECT_FALSE(check_half(1, &reached).ok());
  EXPECT_FALSE(reached);
  EXPECT_TRUE(check_half(2, &reached).ok());
  EXPECT_TRUE(reached);
}

TEST(Error, AResultHoldsAMoveOnlyValue) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

TEST(Error, EveryCodeHasItsName) {
  EXPECT_STREQ(code_name(Code::kIo), "io");
  EXPECT_STREQ(code_name(Code::kCorrupt), "corrupt");
  EXPECT_STREQ(code_name(Code::kBudget), "budget");
  EXPECT_STREQ(code_name(Code::kUnsupported), "unsupported");
  EXPECT_STREQ(code_name(Code::kCancelled), "cancelled");
  EXPECT_STREQ(code_name(Code::kInvalid), "invalid");
}

TEST(ErrorDeathTest, ABrokenInvariantAbortsAndNamesTheCondition) {
  EXPECT_DEATH(CHECK(1 + 1 == 3), "error_test.cpp:[0-9]+: check failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace sluice
