#include "engine/plan.h"

#include <algorithm>
#include <utility>

#include "engine/cores.h"
#include "engine/work_directory.h"
#include "format/fingerprint.h"
#include "io/host_memory.h"
#include "kernels/dispatch.h"
#include "store/expert_store.h"
#include "store/spine_store.h"

namespace sluice {
namespace {

constexpr int64_t kContextAutoMin = 4096;  // a plain conversation
constexpr uint64_t kContextShare = 16;     // of the memory
constexpr uint64_t kStateShare = 16;       // of the memory
constexpr int64_t kSequencesAutoMax = 16;
constexpr int64_t kSequencesMax = 1024;    // above it a number is a typing error
constexpr int kThreadsMax = 1024;          // above it a number is a typing error

// Head-room for the system, the page cache of small files and this program itself.
uint64_t automatic_ram() { return host_memory_limit() / 5 * 4; }

// Positions that the context's share of the memory holds.
int64_t share_positions(const Config& config, uint64_t ram_bytes) {
  const uint64_t page = page_bytes(config, kPagePositions);
  // A model without MLA layers needs no pages: only its own limit counts.
  if (page == 0) return config.max_positions;
  return static_cast<int64_t>(ram_bytes / kContextShare / page) * kPagePositions;
}

int64_t automatic_context(const Config& config, uint64_t ram_bytes) {
  const int64_t fits = share_positions(config, ram_bytes);
  return std::min(std::max(fits, kContextAutoMin), config.max_positions);
}

int64_t automatic_sequences(const Config& config, uint64_t ram_bytes) {
  const uint64_t bytes = std::max<uint64_t>(state_bytes(config, kTentativeRowsMax), 1);
  const auto fits = static_cast<int64_t>(std::min<uint64_t>(ram_bytes / kStateShare / bytes,
                                                            uint64_t{kSequencesAutoMax}));
  return std::max<int64_t>(fits, 1);
}

// At least one whole context, at most one for each sequence.
int64_t pool_positions(const Config& config, uint64_t ram_bytes, const EnginePlan& plan) {
  return std::clamp(share_positions(config, ram_bytes), plan.context_positions,
                    plan.context_positions * plan.n_sequences);
}

Result<MemoryPlan> plan_context(const Checkpoint& checkpoint, const EngineOptions& options,
                                const EnginePlan& plan) {
  const uint64_t ram_bytes = options.ram_bytes ? options.ram_bytes : automatic_ram();
  const PlanDemand demand{.n_sequences = plan.n_sequences,
                          .context_positions = plan.pool_positions,
                          .n_logits = plan.logit_rows,
                          .threads = plan.threads};
  PlanInput input = plan_input(checkpoint, demand, ram_bytes, plan.pack.get());
  input.expert_cache_bytes = options.expert_cache_bytes;
  return make_memory_plan(input);
}

// Fills context and memory for the spine that the plan has.
Status plan_memory(const Checkpoint& checkpoint, const EngineOptions& options, EnginePlan& plan) {
  const Config& config = checkpoint.config();
  const bool automatic = options.context_positions == 0;
  const uint64_t ram_bytes = options.ram_bytes ? options.ram_bytes : automatic_ram();
  plan.context_positions =
      automatic ? automatic_context(config, ram_bytes) : options.context_positions;
  plan.n_sequences =
      options.sequences ? options.sequences : automatic_sequences(config, ram_bytes);
  plan.logit_rows = plan.n_sequences + options.score_rows;
  plan.pool_positions = pool_positions(config, ram_bytes, plan);
  auto memory = plan_context(checkpoint, options, plan);
  if (!memory.ok() && (automatic || options.sequences == 0)) {
    if (automatic) plan.context_positions = std::min(kContextAutoMin, config.max_positions);
    if (options.sequences == 0) plan.n_sequences = 1;
    plan.logit_rows = plan.n_sequences + options.score_rows;
    plan.pool_positions = plan.context_positions;
    memory = plan_context(checkpoint, options, plan);
  }
  TRY(plan.memory, std::move(memory));
  return Ok{};
}

Status plan_int8(const Checkpoint& checkpoint, const EngineOptions& options, EnginePlan& plan) {
  TRY(plan.pack, find_pack(checkpoint, options));
  if (!plan.pack) {
    TRY(const auto directory, work_directory(checkpoint, options));
    return Error{Code::kInvalid, "--spine int8 needs " + (directory / kPackName).string() +
                                     ", which is not there: run sluice convert to make it, or "
                                     "choose --spine bf16"};
  }
  plan.spine_reason = "as asked for";
  return plan_memory(checkpoint, options, plan);
}

// bf16 while all of it fits; else int8 if there is a pack to use.
Status plan_automatic(const Checkpoint& checkpoint, const EngineOptions& options,
                      EnginePlan& plan) {
  const Status bf16 = plan_memory(checkpoint, options, plan);
  if (bf16.ok() && plan.memory.ring_slots == 0) {
    plan.spine_reason = "auto: it fits in memory";
    return Ok{};
  }
  auto pack = find_pack(checkpoint, options);
  if (pack.ok() && pack.value()) {
    plan.pack = std::move(pack).value();
    plan.spine_reason = "auto: the bf16 spine does not fit in memory";
    return plan_memory(checkpoint, options, plan);
  }
  plan.spine_reason = pack.ok() ? "auto: there is no int8 pack; sluice convert makes one"
                                : "auto: " + pack.error().what;
  return bf16;
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
  if (options.sequences < 0 || options.sequences > kSequencesMax) {
    return Error{Code::kInvalid,
                 "--parallel must lie between 1 and " + std::to_string(kSequencesMax)};
  }
  if (!(options.qkv_norm_eps > 0.0f && options.qkv_norm_eps < 1.0f)) {
    return Error{Code::kInvalid, "--qkv-norm-eps must lie between 0 and 1"};
  }
  return Ok{};
}

}  // namespace

Result<EnginePlan> plan_engine(const Checkpoint& checkpoint, const EngineOptions& options) {
  TRY_OK(check_numbers(checkpoint.config(), options));
  EnginePlan plan;
  TRY(plan.table, choose_table(options.isa));
  plan.threads = options.threads ? options.threads : physical_cores();
  switch (options.spine) {
    case SpineChoice::kAuto:
      TRY_OK(plan_automatic(checkpoint, options, plan));
      break;
    case SpineChoice::kInt8:
      TRY_OK(plan_int8(checkpoint, options, plan));
      break;
    case SpineChoice::kBf16:
      plan.spine_reason = "as asked for";
      TRY_OK(plan_memory(checkpoint, options, plan));
      break;
  }
  return plan;
}

double PlanReport::bytes_per_token(double hit) const {
  const double experts =
      static_cast<double>(experts_per_token) * static_cast<double>(expert_record_bytes);
  return static_cast<double>(spine_streamed_bytes) + experts * (1.0 - hit);
}

namespace {

// Payload of the spine in the format that is used.
uint64_t spine_bytes(const Checkpoint& checkpoint, const PackFile* pack) {
  if (pack == nullptr) return checkpoint.spine_bytes();
  uint64_t bytes = pack->layout().payload_bytes();
  // What the pack leaves in the snapshot: embeddings and the norms outside the layers.
  for (const TensorSpec& spec : global_tensors(checkpoint.config())) {
    if (spec.role != Role::kLmHead) bytes += checkpoint.global(spec.role).bytes;
  }
  return bytes;
}

}  // namespace

Result<PlanReport> make_plan_report(const EngineOptions& options) {
  TRY(const Checkpoint checkpoint,
      Checkpoint::open(options.model, options.direct,
                       {.leading_layers = {}, .open_file = options.open_file}));
  PlanReport report;
  TRY(report.plan, plan_engine(checkpoint, options));
  TRY(report.fingerprint, fingerprint(checkpoint));
  const Config& config = checkpoint.config();
  report.sizes = checkpoint_sizes(checkpoint);
  report.work = model_work(checkpoint, report.plan.memory, report.plan.pack.get());
  report.directory = checkpoint.directory().string();
  report.n_layers = config.n_layers;
  report.max_positions = config.max_positions;
  report.spine_bytes = spine_bytes(checkpoint, report.plan.pack.get());
  report.expert_bytes = checkpoint.expert_bytes();
  report.expert_record_bytes = checkpoint.expert_layout().record_bytes;
  for (int32_t index = 0; index < config.n_layers; ++index) {
    const LayerId layer{index};
    if (config.is_moe(layer)) {
      report.n_experts += config.moe.n_experts;
      report.experts_per_token += config.moe.n_experts_per_token;
    }
    if (!report.plan.memory.layer_pinned[static_cast<size_t>(index)]) {
      report.spine_streamed_bytes += spine_slot_bytes(checkpoint, layer, report.plan.pack.get());
    }
  }
  return report;
}

}  // namespace sluice
