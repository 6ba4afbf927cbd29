// What an engine would take and stream, made without opening the model: the memory plan with the
// choices that led to it, and the report of `sluice plan`. Pure functions over files; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "engine/checkpoint_sizes.h"
#include "engine/forecast.h"
#include "engine/options.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "kernels/kernels.h"
#include "store/memory_plan.h"

namespace sluice {

// The choices that `auto` left open, made.
struct EnginePlan {
  MemoryPlan memory;
  const KernelTable* table = nullptr;
  int threads = 0;
  int64_t context_positions = 0;   // prompt and reply of one sequence at most
  int64_t n_sequences = 1;         // computed at once
  int64_t pool_positions = 0;      // of all sequences together
  int64_t logit_rows = 1;          // of one pass
  std::unique_ptr<PackFile> pack;  // null: the bf16 spine
  std::string spine_reason;        // why this spine: a few words for people
  std::string spine() const { return pack ? "int8 (quantised)" : "bf16"; }
};

// The automatic spine is int8 when its pack is complete and the bf16 spine does not fit in memory.
// Automatic memory is 80 % of the host's limit. Automatic context is what a sixteenth of the memory
// holds, at least 4,096 positions and at most the model's, in whole pages; it gives way to 4,096
// before the plan is refused. Several sequences share a pool of positions: what a sixteenth of the
// memory holds, at least one context and at most one for each. The automatic number of sequences is
// that whose states fit in a sixteenth of the memory, 1 to 16. Errors: kBudget names the floor; kInvalid and kUnsupported name the
// option and the cure.
Result<EnginePlan> plan_engine(const Checkpoint& checkpoint, const EngineOptions& options);

// What `sluice plan` tells of a checkpoint and its plan.
struct PlanReport {
  EnginePlan plan;
  CheckpointSizes sizes;
  ModelWork work;
  std::string directory;
  std::string fingerprint;  // 64 hex digits
  int64_t n_layers = 0;
  int64_t max_positions = 0;
  uint64_t spine_bytes = 0;           // payload of all that is not a routed expert
  uint64_t expert_bytes = 0;          // payload of all routed experts
  uint64_t expert_record_bytes = 0;   // of one expert
  int64_t n_experts = 0;              // routed experts of all layers
  int64_t experts_per_token = 0;      // over all layers
  uint64_t spine_streamed_bytes = 0;  // read again in every pass
  int64_t expert_slots() const { return plan.memory.expert_slots; }
  // Bytes that the drive must deliver for one token computed alone, when `hit` of its experts are
  // found in memory.
  double bytes_per_token(double hit) const;
};

Result<PlanReport> make_plan_report(const EngineOptions& options);

}  // namespace sluice
