// Memory limits read from made-up /proc and /sys trees.
#include "io/host_memory.h"

#include <fstream>

#include <gtest/gtest.h>

#include "io/temp_directory.h"

namespace sluice {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A /proc and /sys of a machine with 64 GiB, 48 GiB of them available.
class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    write("proc/meminfo",
          "MemTotal:       67108864 kB\nMemFree:         1048576 kB\n"
          "MemAvailable:   50331648 kB\nSwapTotal:       0 kB\n");
  }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = directory_.path() / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  void expect(uint64_t limit, uint64_t available) {
    const HostMemory memory = read_host_memory(directory_.path());
    EXPECT_EQ(memory.limit, limit);
    EXPECT_EQ(memory.available, available);
  }
  TempDirectory directory_;
};

TEST_F(HostMemoryTest, WithoutControlGroupsTheMachineIsTheLimit) { expect(64 * kGiB, 48 * kGiB); }

TEST_F(HostMemoryTest, AnEmptyTreeLimitsNothing) {
  std::filesystem::remove_all(directory_.path() / "proc");
  expect(std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max());
}

TEST_F(HostMemoryTest, Version2TheGroupsOwnLimitCounts) {
  write("proc/self/cgroup", "0::/user/app\n");
  write("sys/fs/cgroup/user/app/memory.max", "8589934592\n");
  write("sys/fs/cgroup/user/app/memory.current", "3221225472\n");
  expect(8 * kGiB, 5 * kGiB);
}

TEST_F(HostMemoryTest, Version2CachedFilePagesCountAsAvailable) {
  write("proc/self/cgroup", "0::/user/app\n");
  write("sys/fs/cgroup/user/app/memory.max", "8589934592\n");
  write("sys/fs/cgroup/user/app/memory.current", "3221225472\n");
  write("sys/fs/cgroup/user/app/memory.stat",
        "anon 1073741824\nfile 2147483648\nactive_file 0\ninactive_file 2147483648\n");
  expect(8 * kGiB, 7 * kGiB);
}

TEST_F(HostMemoryTest, Version2MaxIsNoLimit) {
  write("proc/self/cgroup", "0::/user/app\n");
  write("sys/fs/cgroup/user/app/memory.max", "max\n");
  write("sys/fs/cgroup/user/app/memory.current", "3221225472\n");
  expect(64 * kGiB, 48 * kGiB);
}

TEST_F(HostMemoryTest, Version2AnAncestorMayBeTighterInEitherFigure) {
  write("proc/self/cgroup", "0::/slice/user/app\n");
  write("sys/fs/cgroup/slice/memory.max", "17179869184\n");  // 16 GiB, 1 GiB left
  write("sys/fs/cgroup/slice/memory.current", "16106127360\n");
  write("sys/fs/cgroup/slice/user/memory.max", "max\n");
  write("sys/fs/cgroup/slice/user/app/memory.max", "8589934592\n");  // 8 GiB, 6 GiB left
  write("sys/fs/cgroup/slice/user/app/memory.current", "2147483648\n");
  expect(8 * kGiB, 1 * kGiB);
  write("sys/fs/cgroup/slice/memory.max", "4294967296\n");
  expect(4 * kGiB, 0);
}

TEST_F(HostMemoryTest, Version2InAContainerTheRootHoldsTheLimit) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "2147483648\n");
  write("sys/fs/cgroup/memory.current", "1073741824\n");
  expect(2 * kGiB, 1 * kGiB);
  // The host's path of the group, which the container's tree does not have.
  write("proc/self/cgroup", "0::/docker/0123456789ab\n");
  expect(2 * kGiB, 1 * kGiB);
}

TEST_F(HostMemoryTest, ALimitAboveTheMachineChangesNothing) {
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/memory.max", "1099511627776\n");
  write("sys/fs/cgroup/app/memory.current", "0\n");
  expect(64 * kGiB, 48 * kGiB);
}

TEST_F(HostMemoryTest, Version1TheMemoryControllersPathIsWalkedUp) {
  write("proc/self/cgroup",
        "12:cpuset:/other\n5:hugetlb,memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "12884901888\n");
  write("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "4294967296\n");
  write("sys/fs/cgroup/memory/docker/memory.stat",
        "inactive_file 7\ntotal_inactive_file 1073741824\n");
  write("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "4096\n");
  expect(12 * kGiB, 9 * kGiB);
}

TEST_F(HostMemoryTest, AWordThatIsNoNumberLimitsNothing) {
  write("proc/self/cgroup", "0::/app\nnonsense\n4:memory\n");
  write("sys/fs/cgroup/app/memory.max", "12x\n");
  expect(64 * kGiB, 48 * kGiB);
}

TEST(HostMemory, ThisMachineHasALimitAndNoMoreAvailable) {
  EXPECT_GT(host_memory_limit(), uint64_t{64} << 20);
  EXPECT_GT(host_memory_available(), 0u);
  EXPECT_LE(host_memory_available(), host_memory_limit());
}

}  // namespace
}  // namespace sluice
