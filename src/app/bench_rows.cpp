// sluice bench rows: what a pass costs by its number of rows, widths alternated, and the line a + b w
// through the medians (least squares).
#include <algorithm>
#include <utility>

#include "app/bench.h"
#include "app/commands.h"
#include "app/interrupt.h"

namespace sluice {
namespace {

struct Width {
  int64_t rows = 0;
  std::vector<double> seconds = {};
  uint64_t bytes = 0, hits = 0, misses = 0;
};

class RowsBench {
 public:
  RowsBench(const BenchOptions& options, BenchEngine& bench) : options_(options), bench_(bench) {
    for (const int64_t rows : options.rows) widths_.push_back({.rows = rows});
  }

  Status round() {
    for (Width& width : widths_) {
      TRY(const GenerateStats stats, pass(width.rows));
      width.seconds.push_back(stats.prefill_s);
      width.bytes += stats.bytes_read;
      width.hits += stats.expert_hits;
      width.misses += stats.expert_misses;
    }
    return Ok{};
  }

  Result<GenerateStats> pass(int64_t rows) {
    const auto more = random_tokens(options_.seed, static_cast<int64_t>(ids_.size()), rows,
                                    bench_.engine->config().vocab_size);
    ids_.insert(ids_.end(), more.begin(), more.end());
    GenerateReply reply = bench_.engine->generate({.tokens = {.prompt = ids_, .max_new = 1}},
                                                  &interrupt_flag(), {});
    if (reply.error) return *std::move(reply.error);
    if (reply.finish == FinishReason::kCancelled) {
      return Error{Code::kCancelled, "the bench was interrupted; start it again"};
    }
    return reply.stats;
  }

  Status print() const {
    double n = 0, sum_w = 0, sum_s = 0, sum_ww = 0, sum_ws = 0;
    for (const Width& width : widths_) {
      Json row = bench_row(options_, std::to_string(width.rows) + " rows");
      bench_.describe(row);
      const auto passes = static_cast<double>(width.seconds.size());
      const Interval seconds = bootstrap_median(width.seconds);
      row["rows"] = width.rows;
      row["passes"] = width.seconds.size();
      row["pass_s"] = interval_json(seconds);
      row["bytes_per_pass"] = static_cast<double>(width.bytes) / passes;
      row["experts_per_pass"] = static_cast<double>(width.hits + width.misses) / passes;
      row["hit_rate"] = static_cast<double>(width.hits) /
                        static_cast<double>(std::max<uint64_t>(1, width.hits + width.misses));
      TRY_OK(print_row(row));
      const auto w = static_cast<double>(width.rows);
      n += 1, sum_w += w, sum_s += seconds.median, sum_ww += w * w, sum_ws += w * seconds.median;
    }
    if (widths_.size() < 2) return Ok{};
    Json row = bench_row(options_, "line");
    bench_.describe(row);
    const double slope = (n * sum_ws - sum_w * sum_s) / (n * sum_ww - sum_w * sum_w);
    row["a_s"] = (sum_s - slope * sum_w) / n;
    row["b_s_per_row"] = slope;
    return print_row(row);
  }

 private:
  const BenchOptions& options_;
  BenchEngine& bench_;
  std::vector<TokenId> ids_;
  std::vector<Width> widths_;
};

}  // namespace

Result<int> bench_rows(const BenchOptions& options) {
  EngineOptions engine = options.engine;
  int64_t rows = 0;
  for (const int64_t width : options.rows) rows += width;
  if (engine.context_positions == 0) {
    engine.context_positions = options.warmup + options.pairs * rows + 1;
  }
  TRY(BenchEngine opened, BenchEngine::open(engine));
  RowsBench bench(options, opened);
  for (int64_t i = 0; i < options.warmup; ++i) TRY_OK(bench.pass(1));
  for (int64_t i = 0; i < options.pairs; ++i) TRY_OK(bench.round());
  TRY_OK(bench.print());
  return kExitDone;
}

}  // namespace sluice
