// How fast this machine multiplies, measured in a moment: what a forecast needs of it.
// Takes some 130 MB for the time of the call. One caller at a time, or they slow each other.
#pragma once

#include <array>

#include "kernels/kernels.h"

namespace sluice {

constexpr size_t kWeightFormats = 3;

// Rates of all threads together.
struct ComputeRates {
  // One row: bytes of weights a second, from memory, by WeightFormat.
  std::array<double, kWeightFormats> row_bytes_s{};
  // Many rows: floating-point operations a second, by WeightFormat.
  std::array<double, kWeightFormats> flops_s{};
  double attend_flops_s = 0;  // attention over latents, from memory
  double state_bytes_s = 0;   // bytes of KDA state, each read and written once
};

// Measures `table` on `threads` threads: a quarter of a second or so, the best of three runs each.
// Buffers of 128 MiB: on a machine with a larger cache the one-row rates are the cache's.
ComputeRates measure_compute_rates(const KernelTable& table, int threads);

}  // namespace sluice
