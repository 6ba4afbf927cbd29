// One plan for all large memory, made at open from --ram or the host's limit. It prints itself,
// refuses below the floor with the floor named, and nothing large is taken outside it.
// Pure function over sizes; immutable result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace sluice {

// A named part of the plan.
struct Claim {
  std::string name;
  uint64_t bytes = 0;
};

struct PlanInput {
  uint64_t ram_bytes = 0;             // the limit
  std::vector<Claim> fixed;           // head, vectors, states, scratch: always needed
  std::vector<uint64_t> layer_bytes;  // spine slot of each layer, slack included
  uint64_t expert_slot_bytes = 0;     // one expert record, slack included; 0 for a dense model
  int64_t n_experts_total = 0;        // over all layers: more slots are useless
  uint64_t row_bytes = 0;             // activations one row keeps between layers
  int64_t rows_min = 0;               // the smallest pass that the engine must be able to run
  int64_t rows_wanted = 0;            // rows of the longest prompt worth one sweep
  // --expert-cache: as many whole slots as fit these bytes, no more than there are experts, granted
  // with the floor.
  std::optional<uint64_t> expert_cache_bytes;
};

struct MemoryPlan {
  uint64_t ram_bytes = 0;
  std::vector<Claim> claims;       // what each part takes, in the order they were granted
  std::vector<bool> layer_pinned;  // evenly spread
  int64_t ring_slots = 0;          // slots for the layers that are streamed; 0 when all are pinned
  uint64_t ring_slot_bytes = 0;    // the largest streamed layer
  int64_t expert_slots = 0;
  int64_t rows_max = 0;          // rows one pass may hold
  uint64_t floor_bytes = 0;      // the least --ram that works
  uint64_t total_bytes() const;  // sum of the claims, at most ram_bytes
  int64_t n_pinned() const;
  std::string text() const;  // one line a claim, then the total; for people
};

// Order: fixed, ring and the least experts and rows (the floor), then activations up to rows_wanted
// within a sixteenth of the memory, then pinned layers, then experts, then the remaining rows.
// A larger limit never pins fewer layers. kBudget names the floor and what it is made of, or the
// least --expert-cache.
Result<MemoryPlan> make_memory_plan(const PlanInput& input);

}  // namespace sluice
