// What the benchmarks share: the clock, percentiles and the host's cores. Pure functions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice {

// Seconds that `work` takes.
template <class Work>
double seconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The value at `fraction` (0..1) of the sorted samples.
inline double percentile(std::vector<double> samples, double fraction) {
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<size_t>(fraction * static_cast<double>(samples.size() - 1))];
}

inline int host_cores() {
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

}  // namespace sluice
