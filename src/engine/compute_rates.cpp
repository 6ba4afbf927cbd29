#include "engine/compute_rates.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "kernels/linear.h"

namespace sluice {
namespace {

constexpr int kRuns = 3;
constexpr uint64_t kWeightBytes = uint64_t{128} << 20;
constexpr int64_t kCols = 7168;        // a row of K3's width
constexpr int64_t kManyRows = 64;      // a tile of a prompt
constexpr int64_t kManyOutputs = 512;  // outputs enough for every thread
// A bf16 of ordinary size, an int8, two MXFP4 codes; as an E8M0 scale it is 2^-67.
constexpr int kPattern = 0x3c;
constexpr int64_t kKvLora = 512, kLatentDim = 576, kHeadDim = 128;  // K3's

template <class Work>
double best_seconds(Work work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

int64_t code_bytes(WeightFormat format) {  // of one row of weights, without scales
  return format == WeightFormat::kBf16 ? 2 * kCols : format == WeightFormat::kInt8 ? kCols : kCols / 2;
}

int64_t scale_bytes(WeightFormat format) {
  return format == WeightFormat::kBf16 ? 0 : format == WeightFormat::kInt8 ? 4 : kCols / 32;
}

// Memory shared by all measurements.
struct Bench {
  Bench(const KernelTable& t, int threads)
      : table(t),
        pool(threads),
        weights(kWeightBytes),
        in(kManyRows * kCols),
        out(std::max(kManyRows * kManyOutputs, static_cast<int64_t>(kWeightBytes) / (kCols / 2))),
        pack(kManyRows * kCols) {
    std::memset(weights.data(), kPattern, weights.size());
    for (float& v : in.span()) v = 1.0f;
  }

  // Seconds of one product with the first `n_outputs` rows of the weights.
  double multiply(WeightFormat format, int64_t n_outputs, int64_t n_rows) {
    const std::byte* scales = weights.data() + n_outputs * code_bytes(format);
    const Matrix w{format, weights.data(), scales, n_outputs, kCols};
    const Compute compute{&table, &pool, pack.span()};
    return best_seconds([&] {
      linear(compute, {out.data(), n_rows, n_outputs}, w, {in.data(), n_rows, kCols});
    });
  }

  // Latents from memory; every head walks all of them, as in a decode row.
  double attend_flops_s() {
    constexpr int64_t kBlocks = 256;
    constexpr int64_t kHeads = 8;  // of each thread
    const auto* latents = reinterpret_cast<const float*>(weights.data());
    const auto attend = [&](int worker, int) {
      float* context = out.data() + worker * kLatentDim;
      AttentionRun run{-1e30f, 0.0f, context};
      for (int64_t block = 0; block < kBlocks; ++block) {
        const LatentBlock at{latents + block * kLatentBlockMax * kLatentDim, kLatentBlockMax,
                             kKvLora, kLatentDim};
        for (int64_t head = 0; head < kHeads; ++head) {
          table.attend_block(run, in.data(), 0.01f, at);
        }
      }
    };
    constexpr double flops = 2.0 * (kLatentDim + kKvLora) * kLatentBlockMax * kBlocks * kHeads;
    return flops * pool.threads() / best_seconds([&] { pool.run(attend); });
  }

  double state_bytes_s() {
    constexpr int64_t kStateFloats = kHeadDim * kHeadDim;
    const int64_t n_heads = static_cast<int64_t>(kWeightBytes / 2) / 4 / kStateFloats;
    auto* states = reinterpret_cast<float*>(weights.data());
    const auto step = [&](int worker, int workers) {
      const Slice heads = slice(n_heads, worker, workers);
      for (int64_t head = heads.begin; head < heads.end; ++head) {
        table.kda_step(states + head * kStateFloats,
                       {.decay = in.data(), .k = in.data(), .v = in.data(), .q = in.data(),
                        .o = out.data() + worker * kHeadDim, .beta = 0.0f, .key_dim = kHeadDim,
                        .value_dim = kHeadDim});
      }
    };
    const auto bytes = static_cast<double>(n_heads * kStateFloats * 4);
    return bytes / best_seconds([&] { pool.run(step); });
  }

  const KernelTable& table;
  ThreadPool pool;
  AlignedBuffer weights;
  FloatBuffer in, out, pack;
};

}  // namespace

ComputeRates measure_compute_rates(const KernelTable& table, int threads) {
  Bench bench(table, threads);
  ComputeRates rates;
  for (const WeightFormat format :
       {WeightFormat::kBf16, WeightFormat::kInt8, WeightFormat::kMxfp4}) {
    const int64_t row_bytes = code_bytes(format) + scale_bytes(format);
    const int64_t n_outputs = static_cast<int64_t>(kWeightBytes) / row_bytes;
    const auto index = static_cast<size_t>(format);
    rates.row_bytes_s[index] =
        static_cast<double>(n_outputs * row_bytes) / bench.multiply(format, n_outputs, 1);
    rates.flops_s[index] = 2.0 * kManyRows * kManyOutputs * kCols /
                           bench.multiply(format, kManyOutputs, kManyRows);
  }
  rates.attend_flops_s = bench.attend_flops_s();
  rates.state_bytes_s = bench.state_bytes_s();
  return rates;
}

}  // namespace sluice
