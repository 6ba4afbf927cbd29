// The choice of --isa.
#include "kernels/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

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

// NEON and the x86 tables exclude each other, so every machine lacks some of these.
TEST(Dispatch, AKnownTableThisMachineLacksIsUnsupportedAndTheErrorSaysWhatItNeeds) {
  const auto tables = supported_tables();
  int lacking = 0;
  for (const std::string name : {"avx2", "avx512", "neon"}) {
    const bool has = std::ranges::any_of(
        tables, [&](const KernelTable* table) { return std::string(table->name) == name; });
    const auto chosen = choose_table(name);
    EXPECT_EQ(chosen.ok(), has) << name;
    if (has) continue;
    ++lacking;
    EXPECT_EQ(chosen.error().code, Code::kUnsupported);
    EXPECT_NE(chosen.error().what.find("--isa " + name + " needs a"), std::string::npos)
        << chosen.error().what;
  }
  EXPECT_GE(lacking, 1);
}

TEST(Dispatch, TheTablesOfAnArchitectureComeSlowestFirst) {
  std::vector<std::string> names;
  for (const KernelTable* table : supported_tables()) names.push_back(table->name);
  const std::vector<std::string> x86 = {"scalar", "avx2", "avx512"};
  const std::vector<std::string> arm = {"scalar", "neon"};
  EXPECT_TRUE(std::ranges::equal(names, std::span(x86).first(std::min(names.size(), x86.size()))) ||
              names == arm);
}

}  // namespace

}  // namespace sluice
