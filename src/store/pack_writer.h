// Makes the int8 pack of a checkpoint: layer by layer into a ".part" file that an interrupted run
// goes on with, whole only by its final name. Reports to callbacks, prints nothing. One owner;
// other processes are kept away by a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "format/checkpoint.h"
#include "format/pack_layout.h"

namespace sluice {

enum class PackPhase { kCheck, kWrite };

struct PackProgress {
  PackPhase phase = PackPhase::kWrite;
  uint64_t done_bytes = 0;  // of the pack's payload
  uint64_t total_bytes = 0;
};

struct PackJob {
  std::filesystem::path directory;  // the work directory; made if need be
  ThreadPool* pool = nullptr;
  const std::atomic<bool>* stop = nullptr;  // may be null; read several times a second
  std::function<void(const PackProgress&)> on_progress = {};      // may be empty
  std::function<void(const std::string& sentence)> on_note = {};  // what was found; may be empty
};

struct PackSummary {
  bool was_complete = false;  // nothing was written
  int64_t groups_kept = 0;    // of an interrupted run or a damaged pack
  int64_t groups_written = 0;
  uint64_t bytes_read = 0;  // aligned bytes asked of the drive
};

// Writes `layout` to job.directory / kPackName. A pack that is there already is read and checked
// to its last byte; what is damaged is written again. Errors: kBudget (the drive is too full; names
// the bytes needed, and another process is writing), kCorrupt (a weight that is not finite; names
// tensor and row), kIo, kCancelled.
Result<PackSummary> write_pack(const Checkpoint& checkpoint, const PackLayout& layout,
                               const PackJob& job);

}  // namespace sluice
