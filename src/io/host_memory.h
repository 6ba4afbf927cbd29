// How much memory this process may use: the least of the machine's and its control groups'.
// Pure reads of the system's tables; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace sluice {

// Physical memory, or the tightest cgroup limit of this process or its ancestors, in bytes.
uint64_t host_memory_limit();

// What can still be taken without swapping: never more than the limit, and on Linux no more than
// MemAvailable and what is left under each cgroup limit.
uint64_t host_memory_available();

// Both figures, in bytes; the largest number stands for "not limited".
struct HostMemory {
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  uint64_t available = std::numeric_limits<uint64_t>::max();
};

// As the Linux tables under `root` (proc/meminfo, proc/self/cgroup, sys/fs/cgroup) say; what is
// missing or unreadable limits nothing. Tests pass a tree of their own.
HostMemory read_host_memory(const std::filesystem::path& root);

}  // namespace sluice
