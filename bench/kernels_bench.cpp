// kernels_bench [ISA] [THREADS] [BUFFER_MB]: linear() of one row in GB/s of weights, against a
// plain read of the same buffer and against the same kernel over weights that stay in each core's
// cache, and of 64 rows in GFLOP/s, against nothing but fma. The arms
// alternate within each repeat; one JSON line per format and arm.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/aligned_buffer.h"
#include "bench/fma_peak.h"
#include "bench/measure.h"
#include "kernels/dispatch.h"
#include "kernels/linear.h"

namespace sluice {

namespace {

constexpr int kRepeats = 7;
constexpr int64_t kCols = 3584;  // K3's latent MoE width
constexpr int64_t kManyRows = 64;

struct Setup {
  const KernelTable* table;
  ThreadPool* pool;
  AlignedBuffer buffer;  // the weights
};

const char* name_of(WeightFormat format) {
  constexpr std::array<const char*, 3> kNames = {"bf16", "int8", "mxfp4"};
  return kNames[static_cast<size_t>(format)];
}

KernelTable::Matmul matmul_of(const Setup& setup, WeightFormat format) {
  if (format == WeightFormat::kBf16) return setup.table->matmul_bf16;
  return format == WeightFormat::kInt8 ? setup.table->matmul_int8 : setup.table->matmul_mxfp4;
}

// A matrix of kCols columns over the buffer's first bytes; int8 and MXFP4 keep scales at its end.
Matrix matrix_over(const Setup& setup, WeightFormat format, int64_t rows_max) {
  const int64_t row_bytes = format == WeightFormat::kBf16   ? 2 * kCols
                            : format == WeightFormat::kInt8 ? kCols + 4
                                                            : kCols / 2 + kCols / 32;
  const int64_t rows = std::min(static_cast<int64_t>(setup.buffer.size()) / row_bytes, rows_max);
  Matrix w{format, setup.buffer.data(), nullptr, rows, kCols};
  if (format == WeightFormat::kInt8) w.scales = w.data + rows * kCols;
  if (format == WeightFormat::kMxfp4) w.scales = w.data + rows * kCols / 2;
  return w;
}

// Fills the buffer with weights of ordinary size: subnormal sums would measure the CPU's slow path.
void fill(const Setup& setup, const Matrix& w) {
  uint32_t state = 1;
  const std::span<std::byte> bytes = setup.buffer.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t random = state >> 24;
    const bool high = w.format == WeightFormat::kBf16 && i % 2 == 1;
    bytes[i] = static_cast<std::byte>(high ? (random & 0x80u) | 0x3cu : random);
  }
  if (w.format == WeightFormat::kMxfp4) {
    for (size_t i = static_cast<size_t>(w.scales - w.data); i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(120 + i % 3);
    }
  }
  constexpr float kScale = 0.01f;
  for (int64_t r = 0; w.format == WeightFormat::kInt8 && r < w.rows; ++r) {
    std::memcpy(bytes.data() + (w.scales - w.data) + r * 4, &kScale, sizeof(kScale));
  }
}

double read_seconds(const Setup& setup) {
  std::vector<uint64_t> sums(static_cast<size_t>(setup.pool->threads()) * 8);
  const double time = seconds([&] {
    setup.pool->run([&](int worker, int workers) {
      const Slice part = slice(static_cast<int64_t>(setup.buffer.size()), worker, workers, 4096);
      std::array<uint64_t, 8> sum{};
      for (int64_t at = part.begin; at + 64 <= part.end; at += 64) {
        std::array<uint64_t, 8> words;
        std::memcpy(words.data(), setup.buffer.data() + at, 64);
        for (size_t i = 0; i < 8; ++i) sum[i] += words[i];
      }
      for (uint64_t s : sum) sums[static_cast<size_t>(worker) * 8] += s;
    });
  });
  volatile uint64_t keep = sums[0];  // the sums are needed
  static_cast<void>(keep);
  return time;
}

double linear_seconds(const Setup& setup, const Matrix& w, int64_t n, FloatBuffer& x,
                      FloatBuffer& y, FloatBuffer& pack) {
  return seconds([&] {
    linear({setup.table, setup.pool, pack.span()}, {y.data(), n, w.rows}, w, {x.data(), n, kCols});
  });
}

// Bytes a second of the one-row kernel when each worker goes over kHotBytes of weights again and
// again: what the arithmetic alone allows. `x` is as the kernel wants it (MXFP4: packed).
double hot_bytes_s(const Setup& setup, const Matrix& w, const float* x, FloatBuffer& y) {
  constexpr int64_t kHotBytes = 128 * 1024, kRounds = 500;
  const KernelTable::Matmul matmul = matmul_of(setup, w.format);
  const double row_bytes =
      static_cast<double>(setup.buffer.size()) / static_cast<double>(w.rows);
  const auto rows = static_cast<int64_t>(static_cast<double>(kHotBytes) / row_bytes);
  const double time = seconds([&] {
    setup.pool->run([&](int worker, int) {
      const int64_t begin = worker * rows;
      for (int64_t i = 0; i < kRounds; ++i) {
        matmul({y.data(), 1, w.rows}, w, {x, 1, kCols}, begin, begin + rows);
      }
    });
  });
  return row_bytes * static_cast<double>(rows * kRounds * setup.pool->threads()) / time;
}

void one_row(const Setup& setup, WeightFormat format) {
  const Matrix w = matrix_over(setup, format, INT64_MAX);
  fill(setup, w);
  FloatBuffer x(kCols), y(w.rows), pack(kCols);
  for (int64_t i = 0; i < kCols; ++i) x.data()[i] = 0.01f * static_cast<float>(i % 17);
  std::vector<double> ours, read, hot;
  const double gb = static_cast<double>(setup.buffer.size()) * 1e-9;
  for (int i = 0; i < kRepeats; ++i) {
    read.push_back(gb / read_seconds(setup));
    ours.push_back(gb / linear_seconds(setup, w, 1, x, y, pack));
    const float* ready = format == WeightFormat::kMxfp4 ? pack.data() : x.data();
    hot.push_back(hot_bytes_s(setup, w, ready, y) * 1e-9);
  }
  std::printf(
      "{\"bench\":\"linear\",\"host_cores\":%d,\"table\":\"%s\",\"threads\":%d,\"format\":\"%s\","
      "\"rows\":1,\"buffer_mb\":%.0f,\"reps\":%d,\"gb_s\":%.2f,\"read_gb_s\":%.2f,"
      "\"hot_gb_s\":%.2f}\n",
      host_cores(), setup.table->name, setup.pool->threads(), name_of(format), gb * 1e3, kRepeats,
      percentile(ours, 0.5), percentile(read, 0.5), percentile(hot, 0.5));
}

void many_rows(const Setup& setup, WeightFormat format) {
  const Matrix w = matrix_over(setup, format, 6144);  // twice an expert's w1: longer than any cache
  fill(setup, w);
  FloatBuffer x(kManyRows * kCols), y(kManyRows * w.rows), pack(kManyRows * kCols);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = 0.01f * static_cast<float>(i % 17);
  const double flops = 2.0 * static_cast<double>(w.rows * kCols * kManyRows);
  std::vector<double> ours, peak;
  for (int i = 0; i < kRepeats; ++i) {
    std::vector<double> done(static_cast<size_t>(setup.pool->threads()));
    const double time = seconds([&] {
      setup.pool->run([&](int worker, int) {
        done[static_cast<size_t>(worker)] = fma_peak_flops(100'000'000);
      });
    });
    double all = 0.0;
    for (double d : done) all += d;
    peak.push_back(all / time * 1e-9);
    ours.push_back(flops / linear_seconds(setup, w, kManyRows, x, y, pack) * 1e-9);
  }
  std::printf(
      "{\"bench\":\"linear\",\"host_cores\":%d,\"table\":\"%s\",\"threads\":%d,\"format\":\"%s\","
      "\"rows\":%d,\"reps\":%d,\"gflop_s\":%.1f,\"fma_peak_gflop_s\":%.1f}\n",
      host_cores(), setup.table->name, setup.pool->threads(), name_of(format),
      static_cast<int>(kManyRows), kRepeats, percentile(ours, 0.5), percentile(peak, 0.5));
}

}  // namespace

}  // namespace sluice

int main(int argc, char** argv) {
  const auto table = sluice::choose_table(argc > 1 ? argv[1] : "auto");
  if (!table.ok()) {
    std::fprintf(stderr, "%s\n", table.error().what.c_str());
    return 1;
  }
  sluice::ThreadPool pool(argc > 2 ? std::atoi(argv[2]) : sluice::host_cores());
  const uint64_t megabytes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 512;
  const sluice::Setup setup{table.value(), &pool, sluice::AlignedBuffer(megabytes * 1'000'000)};
  using sluice::WeightFormat;
  for (WeightFormat format : {WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kMxfp4}) {
    sluice::one_row(setup, format);
    sluice::many_rows(setup, format);
  }
  return 0;
}
