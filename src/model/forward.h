// The one forward pass: layers outermost, every row of every sequence through each, each layer's
// bytes used once. The straight line from tokens to logits.
#pragma once

#include <atomic>

#include "base/error.h"
#include "format/checkpoint.h"
#include "model/batch.h"
#include "model/pass.h"
#include "model/weights.h"
#include "store/expert_store.h"
#include "store/spine_store.h"

namespace sluice {

// What a pass reads from, borrowed from the Model.
struct PassSources {
  const Checkpoint& checkpoint;
  const Weights& weights;
  SpineStore& spine;
  ExpertStore& experts;
  std::atomic<uint64_t>& embedding_bytes_read;
};

// Runs `batch`, for which `pass` was cut. States are changed only when it succeeds.
// `stop` may be null; it is read once a layer (kCancelled).
Status run_pass(const PassSources& sources, const Batch& batch, const Pass& pass, Rows logits,
                const std::atomic<bool>* stop);

}  // namespace sluice
