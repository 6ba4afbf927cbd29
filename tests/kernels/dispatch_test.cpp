// The choice of --isa.
#include "kernels/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sluice {

namespace {

TEST(Dispatch, ScalarIsAlwaysThereAndSlowest) {
  ASSERT_FALSE(supported_tables().empty());
  EXPECT_EQ(supported_tables().front(), &scalar_table());
}

TEST(Dispatch, AutoIsTheFastestSupportedTable) {
  const auto chosen = choose_table("auto");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen.value(), supported_tables().back());
}

TEST(Dispatch, EveryTableIsChosenByItsNameAndIsOfTheFamilyFma) {
  for (const KernelTable* table : supported_tables()) {
    ASSERT_TRUE(choose_table(table->name).ok());
    EXPECT_EQ(choose_table(table->name).value(), table);
    EXPECT_STREQ(table->family, "fma");
  }
}

TEST(Dispatch, AnUnknownNameIsInvalidAndTheErrorListsTheNames) {
  const auto chosen = choose_table("mmx");
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, Code::kInvalid);
  EXPECT_NE(chosen.error().what.find("scalar"), std::string::npos);
  EXPECT_NE(chosen.error().what.find("mmx"), std::string::npos);
}

TEST(Dispatch, AKnownTableThisMachineLacksIsUnsupported) {
  const auto tables = supported_tables();
  const bool has = std::any_of(tables.begin(), tables.end(), [](const KernelTable* table) {
    return std::string(table->name) == "avx512";
  });
  const auto chosen = choose_table("avx512");
  EXPECT_EQ(chosen.ok(), has);
  if (!has) {
    EXPECT_EQ(chosen.error().code, Code::kUnsupported);
  }
}

}  // namespace

}  // namespace sluice
