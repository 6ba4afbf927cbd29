// Counts heap allocations of a test program: replaces its operator new and delete. Include it in one
// source file of the program. The counter is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace sluice::testing {

inline std::atomic<int64_t> n_allocations{0};

inline void* counted_allocation(std::size_t bytes) {
  ++n_allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace sluice::testing

void* operator new(std::size_t bytes) { return sluice::testing::counted_allocation(bytes); }
void* operator new[](std::size_t bytes) { return sluice::testing::counted_allocation(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
