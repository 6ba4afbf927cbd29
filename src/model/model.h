// The model: resident vectors and head, the two stores, workspace, and the one forward pass over a
// Batch. One owner. Two models may live in one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "kernels/kernels.h"
#include "model/batch.h"
#include "model/capture.h"
#include "model/pages.h"
#include "model/state.h"
#include "store/expert_store.h"
#include "store/memory_plan.h"
#include "store/spine_store.h"

namespace sluice {

// Tentative rows a sequence may have in one pass: the pending token and 8 drafts.
constexpr int64_t kTentativeRowsMax = 9;
// eps of q_a_layernorm and kv_a_layernorm (contracts 1).
constexpr float kQkvNormEps = 1e-5f;

struct ModelOptions {
  const KernelTable* table = nullptr;
  int threads = 1;
  float qkv_norm_eps = kQkvNormEps;
  const PackFile* pack = nullptr;  // the int8 spine; null: bf16 as in the snapshot
};

// What the plan needs to know of a model. `n_sequences` states and `context_positions` positions in
// all, `n_logits` rows of logits; `pack` as in ModelOptions.
struct PlanDemand {
  int64_t n_sequences = 1;
  int64_t context_positions = 0;
  int64_t n_logits = 1;
  int threads = 1;
};
PlanInput plan_input(const Checkpoint& checkpoint, const PlanDemand& demand, uint64_t ram_bytes,
                     const PackFile* pack = nullptr);

class Model {
 public:
  // Reads head, vectors and pinned layers. `checkpoint` and options.pack outlive the model, whose
  // plan was made for the same pack.
  static Result<std::unique_ptr<Model>> open(const Checkpoint& checkpoint, const MemoryPlan& plan,
                                             const ModelOptions& options);
  ~Model();

  // Computes all rows of `batch`; rows that want logits fill `logits` [batch.n_logits(), vocab] in
  // batch order. On success kKeep rows are part of their states and kTentative rows await commit;
  // on any error (kIo, kCorrupt, kBudget, kCancelled, kInvalid token or too many rows) every state
  // is as it was. `stop`, if given, is read once a layer. `capture`, if given, takes every
  // intermediate.
  Status forward(const Batch& batch, Rows logits, const std::atomic<bool>* stop, Capture* capture);

  // Adds kda_state.L, conv_state.L.{q,k,v} and mla_cache.L of a committed state.
  void capture_state(State& state, Capture& capture) const;

  const Config& config() const;
  int64_t rows_max() const;  // of one pass
  const Compute& compute() const;
  uint64_t bytes_read() const;  // aligned bytes asked of the drive since open
  ExpertStore::Stats expert_stats() const;
  bool direct() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
