#include "engine/plan.h"

#include <algorithm>
#include <utility>

#include "engine/cores.h"
#include "format/fingerprint.h"
#include "io/host_memory.h"
#include "kernels/dispatch.h"
#include "store/expert_store.h"
#include "store/spine_store.h"

namespace sluice {
namespace {

constexpr int64_t kContextAutoMin = 4096;  // a plain conversation
constexpr uint64_t kContextShare = 16;     // of the memory
constexpr int kThreadsMax = 1024;          // above it a number is a typing error

// Head-room for the system, the page cache of small files and this program itself.
uint64_t automatic_ram() { return host_memory_limit() / 5 * 4; }

Result<std::string> choose_spine(SpineChoice choice) {
  if (choice == SpineChoice::kInt8) {
    return Error{Code::kUnsupported,
                 "--spine int8 needs an int8 pack of the model, and this version cannot make or "
                 "read one; run with --spine bf16"};
  }
  return std::string("bf16");
}

int64_t automatic_context(const Config& config, uint64_t ram_bytes) {
  const uint64_t share = ram_bytes / kContextShare;
  const uint64_t page = page_bytes(config, kPagePositions);
  // A model without MLA layers needs no pages: only its own limit counts.
  const int64_t fits =
      page == 0 ? config.max_positions : static_cast<int64_t>(share / page) * kPagePositions;
  return std::min(std::max(fits, kContextAutoMin), config.max_positions);
}

Result<MemoryPlan> plan_memory(const Checkpoint& checkpoint, const EngineOptions& options,
                               int threads, int64_t context_positions) {
  const uint64_t ram_bytes = options.ram_bytes ? options.ram_bytes : automatic_ram();
  const PlanDemand demand{
      .n_sequences = 1, .context_positions = context_positions, .n_logits = 1, .threads = threads};
  PlanInput input = plan_input(checkpoint, demand, ram_bytes);
  input.expert_cache_bytes = options.expert_cache_bytes;
  return make_memory_plan(input);
}

Status check_numbers(const Config& config, const EngineOptions& options) {
  if (options.threads < 0 || options.threads > kThreadsMax) {
    return Error{Code::kInvalid, "--threads must lie between 1 and " + std::to_string(kThreadsMax)};
  }
  if (options.context_positions < 0 || options.context_positions > config.max_positions) {
    return Error{Code::kInvalid, "--context " + std::to_string(options.context_positions) +
                                     " is outside what the model can hold; give 1 to " +
                                     std::to_string(config.max_positions)};
  }
  if (!(options.qkv_norm_eps > 0.0f && options.qkv_norm_eps < 1.0f)) {
    return Error{Code::kInvalid, "--qkv-norm-eps must lie between 0 and 1"};
  }
  return Ok{};
}

}  // namespace

Result<EnginePlan> plan_engine(const Checkpoint& checkpoint, const EngineOptions& options) {
  const Config& config = checkpoint.config();
  TRY_OK(check_numbers(config, options));
  EnginePlan plan;
  TRY(plan.spine, choose_spine(options.spine));
  TRY(plan.table, choose_table(options.isa));
  plan.threads = options.threads ? options.threads : physical_cores();

  const bool automatic = options.context_positions == 0;
  const uint64_t ram_bytes = options.ram_bytes ? options.ram_bytes : automatic_ram();
  plan.context_positions =
      automatic ? automatic_context(config, ram_bytes) : options.context_positions;
  auto memory = plan_memory(checkpoint, options, plan.threads, plan.context_positions);
  if (!memory.ok() && automatic) {
    plan.context_positions = std::min(kContextAutoMin, config.max_positions);
    memory = plan_memory(checkpoint, options, plan.threads, plan.context_positions);
  }
  TRY(plan.memory, std::move(memory));
  return plan;
}

double PlanReport::bytes_per_token(double hit) const {
  const double experts =
      static_cast<double>(experts_per_token) * static_cast<double>(expert_record_bytes);
  return static_cast<double>(spine_streamed_bytes) + experts * (1.0 - hit);
}

double PlanReport::uniform_hit() const {
  if (n_experts == 0) return 1.0;
  return std::min(1.0, static_cast<double>(expert_slots()) / static_cast<double>(n_experts));
}

Result<PlanReport> make_plan_report(const EngineOptions& options) {
  TRY(const Checkpoint checkpoint, Checkpoint::open(options.model, options.direct));
  PlanReport report;
  TRY(report.plan, plan_engine(checkpoint, options));
  TRY(report.fingerprint, fingerprint(checkpoint));
  const Config& config = checkpoint.config();
  report.directory = checkpoint.directory().string();
  report.n_layers = config.n_layers;
  report.max_positions = config.max_positions;
  report.spine_bytes = checkpoint.spine_bytes();
  report.expert_bytes = checkpoint.expert_bytes();
  report.expert_record_bytes = checkpoint.expert_layout().record_bytes;
  for (int32_t index = 0; index < config.n_layers; ++index) {
    const LayerId layer{index};
    if (config.is_moe(layer)) {
      report.n_experts += config.moe.n_experts;
      report.experts_per_token += config.moe.n_experts_per_token;
    }
    if (!report.plan.memory.layer_pinned[static_cast<size_t>(index)]) {
      report.spine_streamed_bytes += spine_slot_bytes(checkpoint, layer);
    }
  }
  return report;
}

}  // namespace sluice
