// The spine (all that is not a routed expert), layer by layer, from the snapshot or from an int8
// pack: pinned layers are resident, the others are read into ring slots when acquired. One owner:
// the thread that runs the pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "store/memory_plan.h"

namespace sluice {

// A weight matrix as stored, in memory; any alignment.
struct StoredMatrix {
  Dtype dtype = Dtype::kOther;
  const std::byte* data = nullptr;
  const std::byte* scales = nullptr;  // int8 packs: fp32 [rows]
  int64_t rows = 0, cols = 0;
};

class SpineStore;

// The matrices of one layer, valid while this object lives. At most ring_slots leases of streamed
// layers may live at once.
class [[nodiscard]] SpineLease {
 public:
  SpineLease(SpineLease&& o) noexcept;
  SpineLease& operator=(SpineLease&&) = delete;
  ~SpineLease();
  // The matrix of `role`; CHECKs that the layer has it.
  StoredMatrix matrix(Role role) const;

 private:
  friend class SpineStore;
  SpineLease(SpineStore* store, LayerId layer, int32_t slot);
  SpineStore* store_;
  LayerId layer_;
  int32_t slot_;  // ring slot, or -1 for a pinned layer
};

// Bytes a slot needs for the matrices of `layer`: its read ranges, each widened to page boundaries.
// `pack` may be null: the snapshot's own matrices.
uint64_t spine_slot_bytes(const Checkpoint& checkpoint, LayerId layer,
                          const PackFile* pack = nullptr);

class SpineStore {
 public:
  // Reads the pinned layers. `checkpoint`, and `pack` unless null, outlive the store.
  static Result<std::unique_ptr<SpineStore>> open(const Checkpoint& checkpoint,
                                                  const MemoryPlan& plan,
                                                  const PackFile* pack = nullptr);
  ~SpineStore();  // CHECKs that no lease is left

  // Returns when the layer's matrices are in memory; those of a pack are held against their
  // checksums the first time. kIo / kCorrupt name file and offset; the store stays usable.
  Result<SpineLease> acquire(LayerId layer);

  uint64_t bytes_read() const;  // aligned bytes asked of the drive since open, pins included
  bool direct() const;          // whether all reads bypass the page cache

 private:
  friend class SpineLease;
  struct Impl;
  explicit SpineStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
