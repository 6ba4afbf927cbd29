// Token embeddings, read by row from the snapshot: a few KB a token are not worth 2.3 GB of memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "format/checkpoint.h"
#include "model/batch.h"
#include "model/pass.h"

namespace sluice {

// Fills the residual of every row of the pass with its token's embedding, widened to fp32. Rows go
// through the page cache: neighbours and repeats are common. Adds the bytes to `bytes_read`.
// kIo, kCorrupt name file and offset. Token ids were checked.
Status embed(const Checkpoint& checkpoint, const Batch& batch, const Pass& pass,
             std::atomic<uint64_t>& bytes_read);

}  // namespace sluice
