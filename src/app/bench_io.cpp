// sluice bench io: how fast the model's drives deliver ranges of its shards, by reads in flight and by
// how they are asked for, arms alternated.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "app/bench.h"
#include "app/commands.h"
#include "app/interrupt.h"
#include "engine/emulation.h"
#include "engine/philox.h"
#include "io/raw_reads.h"

namespace sluice {
namespace {

constexpr uint64_t kRangeBytes = uint64_t{16} << 20;  // about an expert
constexpr uint64_t kWindowBytes = uint64_t{512} << 20;
constexpr int32_t kDepths[] = {1, 2, 4, 8, 16, 32};

struct Arm {
  std::string name;
  int32_t depth = 0;
  std::string backend;
  std::unique_ptr<RawReads> reads;
  std::vector<double> gb_s, ratios;  // ratios: to the first arm of the same round
};

Result<std::vector<FilePtr>> open_shards(const EngineOptions& options) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.model, error)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<FilePtr> files;
  for (const auto& path : paths) {
    TRY(FilePtr file, options.open_file(path, options.direct));
    if (file->size() >= kPageBytes) files.push_back(std::move(file));
  }
  if (files.empty()) {
    return Error{Code::kIo, options.model.string() +
                                ": holds no *.safetensors to read; name a snapshot directory"};
  }
  return files;
}

// Ranges of all the files, drawn by seed and round.
std::vector<LoggedRead> draw_ranges(std::span<const FilePtr> files, uint64_t bytes, uint64_t seed,
                                    uint64_t round) {
  uint64_t pages = 0;
  for (const FilePtr& file : files) pages += file->size() / kPageBytes;
  std::vector<LoggedRead> ranges;
  uint64_t drawn = 0;
  while (drawn < bytes) {
    const double u = philox_uniform(seed, ranges.size(), round);
    auto page = static_cast<uint64_t>(u * static_cast<double>(pages));
    size_t f = 0;
    while (page >= files[f]->size() / kPageBytes) page -= files[f++]->size() / kPageBytes;
    const uint64_t whole = round_down(files[f]->size(), kPageBytes);
    const uint64_t range = std::min(kRangeBytes, whole);
    const uint64_t offset = std::min(page * kPageBytes, whole - range);
    ranges.push_back({files[f].get(), offset, range});
    drawn += range;
  }
  return ranges;
}

Result<std::vector<Arm>> make_arms() {
  std::vector<Arm> arms;
  for (const ReadBackend backend : {ReadBackend::kAuto, ReadBackend::kThreads}) {
    for (const int32_t depth : kDepths) {
      Arm arm;
      arm.depth = depth;
      TRY(arm.reads,
          RawReads::open({.backend = backend, .depth = depth}, kRangeBytes, kWindowBytes));
      arm.backend = arm.reads->backend() == ReadBackend::kUring ? "io_uring" : "threads";
      arm.name = arm.backend + " depth " + std::to_string(depth);
      const bool known = std::ranges::find(arms, arm.name, &Arm::name) != arms.end();
      if (!known) arms.push_back(std::move(arm));
    }
  }
  return arms;
}

}  // namespace

Result<int> bench_io(const BenchOptions& options) {
  EngineOptions engine = options.engine;
  TRY(const auto emulated, emulate_drives(engine));
  TRY(const std::vector<FilePtr> files, open_shards(engine));
  TRY(std::vector<Arm> arms, make_arms());
  for (int64_t round = 0; round < options.pairs; ++round) {
    double first = 0;
    for (size_t i = 0; i < arms.size(); ++i) {
      if (interrupt_flag()) return kExitInterrupted;
      Arm& arm = arms[i];
      const auto draw = static_cast<uint64_t>(round) * arms.size() + i;
      const auto ranges = draw_ranges(files, options.bytes, options.seed, draw);
      TRY(const RawReads::Times times, arm.reads->run(ranges));
      if (i == 0) first = times.gb_s();
      arm.gb_s.push_back(times.gb_s());
      arm.ratios.push_back(times.gb_s() / first);
    }
  }
  for (const Arm& arm : arms) {
    Json row = bench_row(options, arm.name);
    row["backend"] = arm.backend;
    row["depth"] = arm.depth;
    row["direct"] = files.front()->direct();
    row["rounds"] = arm.gb_s.size();
    row["range_bytes"] = kRangeBytes;
    row["raw_gb_s"] = interval_json(bootstrap_median(arm.gb_s));
    row["ratio"] = interval_json(bootstrap_median(arm.ratios));
    TRY_OK(print_row(row));
  }
  return kExitDone;
}

}  // namespace sluice
