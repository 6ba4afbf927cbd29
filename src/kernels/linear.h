// A matrix product split over the compute threads: the one way the model multiplies by weights.
// One owner (the thread that owns the pool).
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace sluice {

// What compute needs, borrowed. `pack` is scratch for linear_pack_floats() floats.
struct Compute {
  const KernelTable* k = nullptr;
  ThreadPool* pool = nullptr;
  std::span<float> pack;
};

// Scratch that linear() needs for `n_rows` rows of `cols` columns.
constexpr int64_t linear_pack_floats(int64_t n_rows, int64_t cols) { return n_rows * cols; }

// y[n, w.rows] = x[n, w.cols] Wᵀ. Outputs are split over the threads, never a sum.
void linear(const Compute& compute, Rows y, const Matrix& w, ConstRows x);

}  // namespace sluice
