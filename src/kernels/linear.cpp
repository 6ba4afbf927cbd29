#include "kernels/linear.h"

#include "base/error.h"

namespace sluice {

namespace {

// Rows of W a thread takes at a time: a whole number of every table's register tile.
constexpr int64_t kRowGrain = 8;
// Multiplications below which the fork-join (about 1 us) costs more than it saves.
constexpr int64_t kAloneMax = 32768;

KernelTable::Matmul matmul_of(const KernelTable& table, WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return table.matmul_bf16;
    case WeightFormat::kInt8:
      return table.matmul_int8;
    case WeightFormat::kMxfp4:
      return table.matmul_mxfp4;
  }
  check_failed(__FILE__, __LINE__, "a weight format without a matmul");
}

// Runs work(begin, end) over the parts of [0, count), on the caller alone when `alone`.
template <class Work>
void split(ThreadPool& pool, bool alone, int64_t count, int64_t grain, Work work) {
  if (alone || count <= grain) return work(0, count);
  pool.run([&](int worker, int workers) {
    const Slice part = slice(count, worker, workers, grain);
    if (part.begin < part.end) work(part.begin, part.end);
  });
}

}  // namespace

void linear(const Compute& compute, Rows y, const Matrix& w, ConstRows x) {
  CHECK(y.n >= x.n);
  if (x.n == 0) return;
  const bool alone = compute.pool->threads() == 1 || x.n * w.rows * w.cols <= kAloneMax;
  if (w.format == WeightFormat::kMxfp4) {
    CHECK(w.cols % 32 == 0);
    CHECK(static_cast<int64_t>(compute.pack.size()) >= linear_pack_floats(x.n, w.cols));
    const Rows packed{compute.pack.data(), x.n, w.cols};
    split(*compute.pool, alone || x.n * w.cols <= kAloneMax, x.n, 1, [&](int64_t t, int64_t end) {
      for (; t < end; ++t) pack_mxfp4(packed.row(t), x.row(t), w.cols);
    });
    x = packed;
  }
  const KernelTable::Matmul matmul = matmul_of(*compute.k, w.format);
  split(*compute.pool, alone, w.rows, kRowGrain,
        [&](int64_t begin, int64_t end) { matmul(y, w, x, begin, end); });
}

}  // namespace sluice
