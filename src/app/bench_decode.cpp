// sluice bench decode: tokens one after the other beside raw reads of the same kind, alternated. The
// raw arm reads what the engine read for its last warm-up tokens, in another order.
#include <algorithm>
#include <utility>

#include "app/bench.h"
#include "app/commands.h"
#include "app/interrupt.h"
#include "base/sha256.h"
#include "io/raw_reads.h"

namespace sluice {
namespace {

constexpr int64_t kPromptTokens = 8;
constexpr uint64_t kRawWindowBytes = uint64_t{256} << 20;

struct Sums {
  int64_t tokens = 0;
  uint64_t bytes = 0, hits = 0, misses = 0;
};

class DecodeBench {
 public:
  explicit DecodeBench(const BenchOptions& options, BenchEngine& bench)
      : options_(options), bench_(bench) {
    ids_ = random_tokens(options.seed, 0, kPromptTokens, bench.engine->config().vocab_size);
  }

  // Prompt, warm-up, and a log of the reads of as many tokens as one arm makes.
  Status prepare() {
    TRY_OK(decode(options_.warmup).status);
    bench_.log->start();
    const Status logged = decode(options_.tokens).status;
    reads_ = bench_.log->stop();
    TRY_OK(logged);
    sums_ = {};
    if (reads_.empty()) return Ok{};
    const auto largest = std::ranges::max(reads_, {}, &LoggedRead::bytes).bytes;
    TRY(raw_, RawReads::open({}, largest, kRawWindowBytes));
    return Ok{};
  }

  Status pair(int64_t number) {
    const bool decode_first = number % 2 == 0;
    if (!decode_first) TRY_OK(read_raw(number));
    const Arm arm = decode(options_.tokens);
    TRY_OK(arm.status);
    const auto tokens = static_cast<double>(arm.tokens);
    tok_s_.push_back(tokens / arm.seconds);
    read_gb_s_.push_back(static_cast<double>(arm.bytes) / 1e9 / arm.seconds);
    if (decode_first) TRY_OK(read_raw(number));
    if (!raw_gb_s_.empty()) ratios_.push_back(read_gb_s_.back() / raw_gb_s_.back());
    return Ok{};
  }

  Json row() const {
    Json row = bench_row(options_, "decode");
    bench_.describe(row);
    const auto tokens = static_cast<double>(sums_.tokens);
    const double required =
        static_cast<double>(bench_.spine_streamed_bytes) +
        static_cast<double>(sums_.misses * bench_.expert_record_bytes) / tokens;
    row["pairs"] = tok_s_.size();
    row["tokens"] = sums_.tokens;
    row["tok_s"] = interval_json(bootstrap_median(tok_s_));
    row["bytes_per_token"] = static_cast<double>(sums_.bytes) / tokens;
    row["required_bytes_per_token"] = required;
    row["hit_rate"] = sums_.hits + sums_.misses == 0
                          ? 0.0
                          : static_cast<double>(sums_.hits) /
                                static_cast<double>(sums_.hits + sums_.misses);
    row["read_gb_s"] = median(read_gb_s_);
    if (!ratios_.empty()) {
      row["raw_gb_s"] = median(raw_gb_s_);
      row["ratio"] = interval_json(bootstrap_median(ratios_));
    }
    Sha256 sha;
    for (const TokenId id : ids_) sha.update(std::to_string(id) + ",");
    row["tokens_sha"] = sha.hex();
    return row;
  }

 private:
  struct Arm {
    Status status = Ok{};
    int64_t tokens = 0;
    uint64_t bytes = 0;
    double seconds = 0;
  };

  Arm decode(int64_t tokens) {
    GenerateReply reply = bench_.engine->generate(
        {.tokens = {.prompt = ids_,
                    .max_new = tokens,
                    .sampling = {.temperature = 1.0, .seed = options_.seed}}},
        &interrupt_flag(), {});
    if (reply.error) return {.status = *std::move(reply.error)};
    if (reply.finish == FinishReason::kCancelled || reply.ids.empty()) {
      return {.status = Error{Code::kCancelled, "the bench was interrupted; start it again"}};
    }
    ids_.insert(ids_.end(), reply.ids.begin(), reply.ids.end());
    const auto made = static_cast<int64_t>(reply.ids.size());
    sums_.tokens += made;
    sums_.bytes += reply.stats.bytes_read;
    sums_.hits += reply.stats.expert_hits;
    sums_.misses += reply.stats.expert_misses;
    return {.tokens = made, .bytes = reply.stats.bytes_read, .seconds = reply.stats.total_s};
  }

  Status read_raw(int64_t number) {
    if (!raw_) return Ok{};
    shuffle_reads(reads_, static_cast<uint64_t>(number));
    TRY(const RawReads::Times times, raw_->run(reads_));
    raw_gb_s_.push_back(times.gb_s());
    return Ok{};
  }

  const BenchOptions& options_;
  BenchEngine& bench_;
  std::vector<TokenId> ids_;
  std::vector<LoggedRead> reads_;
  std::unique_ptr<RawReads> raw_;
  Sums sums_;
  std::vector<double> tok_s_, read_gb_s_, raw_gb_s_, ratios_;
};

}  // namespace

Result<int> bench_decode(const BenchOptions& options) {
  EngineOptions engine = options.engine;
  const int64_t tokens = options.warmup + (options.pairs + 1) * options.tokens;
  if (engine.context_positions == 0) engine.context_positions = kPromptTokens + tokens + 1;
  TRY(BenchEngine opened, BenchEngine::open(engine));
  DecodeBench bench(options, opened);
  TRY_OK(bench.prepare());
  for (int64_t i = 0; i < options.pairs; ++i) TRY_OK(bench.pair(i));
  TRY_OK(print_row(bench.row()));
  return kExitDone;
}

}  // namespace sluice
