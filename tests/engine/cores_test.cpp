#include "engine/cores.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Cores, ReadsTheKernelsCpuLists) {
  EXPECT_EQ(parse_cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), std::vector<int>{5});
  for (const char* bad : {"x", "1-", "3-1", "1,,2", "-1", "0-999999999"}) {
    EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
  }
}

TEST(Cores, ThereIsAtLeastOne) { EXPECT_GE(physical_cores(), 1); }

}  // namespace
}  // namespace sluice
