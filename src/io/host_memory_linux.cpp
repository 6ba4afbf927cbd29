#include "io/host_memory.h"

#include <algorithm>

#include <unistd.h>

namespace sluice {

uint64_t host_memory_limit() {
  const auto physical = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(physical, read_host_memory("/").limit);
}

uint64_t host_memory_available() {
  return std::min(host_memory_limit(), read_host_memory("/").available);
}

}  // namespace sluice
