#include "app/bench.h"

#include <array>
#include <cstdio>
#include <utility>

#include <sys/utsname.h>

#include "app/build_info.h"
#include "app/commands.h"
#include "app/interrupt.h"
#include "app/output.h"
#include "base/size.h"
#include "engine/cores.h"
#include "engine/emulation.h"
#include "engine/philox.h"
#include "io/host_memory.h"

namespace sluice {
namespace {

struct Bench {
  const char* name;
  Result<int> (*run)(const BenchOptions&);
};
constexpr std::array kBenches = {
    Bench{"cache", bench_cache},
    Bench{"decode", bench_decode},
    Bench{"io", bench_io},
    Bench{"rows", bench_rows},
};

std::string host_text() {
  utsname name{};
  ::uname(&name);
  return std::string(name.sysname) + " " + name.release + " " + name.machine + ", " +
         std::to_string(physical_cores()) + " cores, " + format_size(host_memory_limit());
}

}  // namespace

Result<int> bench_command(const BenchOptions& options) {
  std::string names;
  for (const Bench& bench : kBenches) {
    if (options.kind == bench.name) {
      install_interrupt();
      return bench.run(options);
    }
    names += (names.empty() ? "" : ", ") + std::string(bench.name);
  }
  return Error{Code::kInvalid, "there is no bench \"" + options.kind + "\"; give one of " + names};
}

Json bench_row(const BenchOptions& options, const std::string& arm) {
  return {{"bench", options.kind},
          {"arm", arm},
          {"evidence", options.engine.emulated_drives ? "emulated" : "measured"},
          {"commit", build_info().commit},
          {"dirty", build_info().dirty},
          {"host", host_text()},
          {"seed", options.seed}};
}

Json interval_json(const Interval& interval) {
  return {{"median", interval.median}, {"lo", interval.lo}, {"hi", interval.hi}};
}

Status print_row(const Json& row) {
  TRY_OK(write_out(dump_json(row) + "\n"));
  std::fflush(stdout);  // a bench may take hours: each row is out when it is known
  return Ok{};
}

Result<BenchEngine> BenchEngine::open(EngineOptions options) {
  BenchEngine opened;
  TRY(opened.emulated, emulate_drives(options));
  options.emulated_drives.reset();
  TRY(const PlanReport report, make_plan_report(options));
  opened.spine_streamed_bytes = report.spine_streamed_bytes;
  opened.expert_record_bytes = report.expert_record_bytes;
  opened.log = ReadLog::make();
  options.open_file = opened.log->wrap(options.open_file);
  TRY(opened.engine, Engine::open(options));
  return opened;
}

void BenchEngine::describe(Json& row) const {
  const EnginePlan& plan = engine->plan();
  row["isa"] = plan.table->name;
  row["family"] = plan.table->family;
  row["threads"] = plan.threads;
  row["ram"] = plan.memory.ram_bytes;
  row["spine"] = plan.spine();
  row["layers_pinned"] = plan.memory.n_pinned();
  row["expert_slots"] = plan.memory.expert_slots;
  row["direct"] = engine->direct();
  if (!emulated) return;
  const EmulatedDrive::Stats drive = emulated->stats();
  row["emulation_late_s"] = drive.late_s;
  row["emulation_late_reads"] = drive.late_reads;
}

std::vector<TokenId> random_tokens(uint64_t seed, int64_t begin, int64_t n, int64_t vocab_size) {
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < n; ++i) {
    const double u = philox_uniform(seed, static_cast<uint64_t>(begin + i), 0);
    ids.push_back(TokenId{static_cast<int32_t>(u * static_cast<double>(vocab_size))});
  }
  return ids;
}

void shuffle_reads(std::span<LoggedRead> reads, uint64_t seed) {
  for (size_t i = reads.size(); i > 1; --i) {
    const double u = philox_uniform(seed, i, 1);
    std::swap(reads[i - 1], reads[static_cast<size_t>(u * static_cast<double>(i))]);
  }
}

}  // namespace sluice
