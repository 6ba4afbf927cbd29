// linear(): the same bits for any number of threads, and equal to one matmul call.
#include "kernels/linear.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/bits.h"
#include "kernels/dispatch.h"

namespace sluice {

namespace {

constexpr float kGuard = 12345.0f;

std::vector<float> run_linear(const KernelTable& table, int threads, const Matrix& w,
                              const std::vector<float>& x, int64_t n) {
  ThreadPool pool(threads);
  std::vector<float> pack(static_cast<size_t>(linear_pack_floats(n, w.cols)));
  const int64_t stride = w.rows + 2;
  std::vector<float> y(static_cast<size_t>(n * stride), kGuard);
  linear({&table, &pool, pack}, {y.data(), n, stride}, w, {x.data(), n, w.cols});
  return y;
}

TEST(Linear, ThreadsDoNotChangeABit) {
  Random random(40);
  for (WeightFormat format : {WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kMxfp4}) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 32}, {259, 320}, {64, 1024}}) {
      const OwnedMatrix w(format, rows, cols, 1, random);
      for (int64_t n : {0, 1, 2, 9, 40}) {
        const std::vector<float> x = random.normals(n * cols);
        const std::vector<float> in = packed_for(format, x, cols);
        std::vector<float> want(static_cast<size_t>(n * (rows + 2)), kGuard);
        matmul_of(scalar_table(), format)({want.data(), n, rows + 2}, w.view(),
                                          {in.data(), n, cols}, 0, rows);
        for (const KernelTable* table : supported_tables()) {
          for (int threads : {1, 2, 3, 5}) {
            EXPECT_TRUE(same_bits(run_linear(*table, threads, w.view(), x, n), want))
                << table->name << " " << name_of(format) << " " << rows << "x" << cols << " n " << n
                << " threads " << threads;
          }
        }
      }
    }
  }
}

TEST(Linear, ReadsRowsThatAreApart) {
  Random random(41);
  const OwnedMatrix w(WeightFormat::kMxfp4, 5, 64, 1, random);
  std::vector<float> x = random.normals(3 * 70);
  std::vector<float> dense;
  for (int64_t t = 0; t < 3; ++t)
    dense.insert(dense.end(), x.begin() + t * 70, x.begin() + t * 70 + 64);
  ThreadPool pool(2);
  std::vector<float> pack(3 * 64), y(3 * 5), want(3 * 5);
  const Compute compute{supported_tables().back(), &pool, pack};
  linear(compute, {y.data(), 3, 5}, w.view(), {x.data(), 3, 70});
  linear(compute, {want.data(), 3, 5}, w.view(), {dense.data(), 3, 64});
  EXPECT_TRUE(same_bits(y, want));
}

}  // namespace

}  // namespace sluice
