#include <algorithm>

#include "base/aligned_buffer.h"
#include "model/model.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace sluice {

PlanInput plan_input(const Checkpoint& checkpoint, const PlanDemand& demand, uint64_t ram_bytes,
                     const PackFile* pack) {
  const Config& config = checkpoint.config();
  const auto n_sequences = static_cast<uint64_t>(demand.n_sequences);
  const auto n_logits = static_cast<uint64_t>(demand.n_logits);
  PlanInput input;
  input.ram_bytes = ram_bytes;
  input.fixed = {
      {"head", head_bytes(checkpoint, pack)},
      {"norms and other vectors", vector_bytes(checkpoint)},
      {"KDA states", n_sequences * state_bytes(config, kTentativeRowsMax)},
      {"MLA cache", page_bytes(config, demand.context_positions)},
      {"logits", n_logits * static_cast<uint64_t>(config.vocab_size) * sizeof(float)},
      {"scratch", Workspace::tile_bytes(config, demand.threads)},
  };
  for (int32_t layer = 0; layer < config.n_layers; ++layer) {
    input.layer_bytes.push_back(spine_slot_bytes(checkpoint, LayerId{layer}, pack));
  }
  input.expert_slot_bytes = expert_slot_bytes(checkpoint);
  input.n_experts_total = checkpoint.n_experts_total();
  input.row_bytes = Workspace::row_bytes(config);
  // The least pass: a decode row and its drafts for every sequence.
  input.rows_min = demand.n_sequences * kTentativeRowsMax;
  input.rows_wanted = std::max(demand.context_positions, input.rows_min);
  return input;
}

}  // namespace sluice
