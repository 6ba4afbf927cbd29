// sluice bench: measurements as JSON lines, one object an arm. What the benches share; each has its
// own file bench_NAME.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/bootstrap.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/plan.h"
#include "io/read_log.h"

namespace sluice {

Result<int> bench_cache(const BenchOptions& options);
Result<int> bench_decode(const BenchOptions& options);
Result<int> bench_io(const BenchOptions& options);
Result<int> bench_rows(const BenchOptions& options);

// The fields that every row begins with.
Json bench_row(const BenchOptions& options, const std::string& arm);
Json interval_json(const Interval& interval);
Status print_row(const Json& row);

// An engine whose reads can be logged, its plan, and the emulated drives, if any.
struct BenchEngine {
  std::shared_ptr<const GeneratedModel> emulated;
  std::shared_ptr<ReadLog> log;
  uint64_t spine_streamed_bytes = 0;  // of one pass
  uint64_t expert_record_bytes = 0;
  std::unique_ptr<Engine> engine;

  static Result<BenchEngine> open(EngineOptions options);
  // The fields that say how it computes and from where it reads.
  void describe(Json& row) const;
};

// `n` tokens of a text without sense: any of the vocabulary, drawn by `seed` and the position.
std::vector<TokenId> random_tokens(uint64_t seed, int64_t begin, int64_t n, int64_t vocab_size);

// Another order of the same reads, the same for the same seed.
void shuffle_reads(std::span<LoggedRead> reads, uint64_t seed);

}  // namespace sluice
