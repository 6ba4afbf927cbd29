#include "format/name_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string name_of(int i) { return "layers." + std::to_string(i * 7919 % 10007) + ".weight"; }

TEST(NameTable, NumbersNamesAsTheyComeAndFindsThemAgain) {
  for (const bool reserved : {false, true}) {
    NameTable table;
    if (reserved) table.reserve(5000, 100'000);
    for (uint32_t i = 0; i < 5000; ++i) {
      const std::string name = name_of(static_cast<int>(i));
      EXPECT_FALSE(table.find(name));
      EXPECT_EQ(table.insert(name), std::pair(i, true));
      EXPECT_EQ(table.insert(name), std::pair(i, false));
    }
    ASSERT_EQ(table.size(), 5000u);
    for (uint32_t i = 0; i < 5000; ++i) {
      EXPECT_EQ(table.find(name_of(static_cast<int>(i))), i);
      EXPECT_EQ(table.name(i), name_of(static_cast<int>(i)));
    }
    EXPECT_FALSE(table.find("layers.weight"));
  }
}

TEST(NameTable, HoldsTheEmptyNameAndBytesOfAnyKind) {
  NameTable table;
  const std::string odd("a\0b\xff", 4);
  EXPECT_TRUE(table.insert("").second);
  EXPECT_TRUE(table.insert(odd).second);
  EXPECT_EQ(table.find(""), 0u);
  EXPECT_EQ(table.find(odd), 1u);
  EXPECT_FALSE(table.find("a"));
}

TEST(NameTable, SortsByBytes) {
  NameTable table;
  std::vector<std::string> names = {"b", "a10", "a9", "\xff", "", "a"};
  for (const std::string& name : names) table.insert(name);
  std::sort(names.begin(), names.end());
  std::vector<std::string> sorted;
  for (const uint32_t number : table.sorted()) sorted.emplace_back(table.name(number));
  EXPECT_EQ(sorted, names);
}

}  // namespace
}  // namespace sluice
