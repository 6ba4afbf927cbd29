// Without control groups or a word on what is free, all physical memory counts: --ram says less.
#include "io/host_memory.h"

#include <unistd.h>

namespace sluice {

uint64_t host_memory_limit() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t host_memory_available() { return host_memory_limit(); }

}  // namespace sluice
