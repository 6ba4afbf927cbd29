// Routed experts: a bounded set of slots over the checkpoint's own bytes, and leases that pin them.
// One owner: the thread that runs the pass.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "format/checkpoint.h"

namespace sluice {

class ExpertStore;

// An expert's record that stays in its slot while this object lives.
class [[nodiscard]] ExpertLease {
 public:
  ExpertLease(ExpertLease&& o) noexcept;
  ExpertLease& operator=(ExpertLease&&) = delete;
  ~ExpertLease();
  ExpertId expert() const { return expert_; }
  // The record of ExpertLayout::record_bytes bytes, at any alignment.
  const std::byte* record() const { return record_; }

 private:
  friend class ExpertStore;
  ExpertLease(ExpertStore* store, int64_t slot, ExpertId expert, const std::byte* record);
  ExpertStore* store_;
  int64_t slot_;
  ExpertId expert_;
  const std::byte* record_;
};

// The experts that one layer needs in one pass, handed out one by one.
class [[nodiscard]] ExpertBatch {
 public:
  // The next expert, in rising id; nothing after the last. Waits for its bytes. The previous lease
  // should be gone: each live lease holds a slot. After an error the batch is dead.
  Result<std::optional<ExpertLease>> next();

 private:
  friend class ExpertStore;
  ExpertBatch(ExpertStore* store, LayerId layer, std::span<const ExpertId> experts);
  ExpertStore* store_;
  LayerId layer_;
  std::span<const ExpertId> experts_;
  size_t taken_ = 0;
};

// Bytes of one slot.
uint64_t expert_slot_bytes(const Checkpoint& checkpoint);

class ExpertStore {
 public:
  static constexpr int64_t kSlotsMin = 2;

  // Takes `slots` slots (>= kSlotsMin unless the model is dense). `checkpoint` outlives the store.
  static Result<std::unique_ptr<ExpertStore>> open(const Checkpoint& checkpoint, int64_t slots);
  ~ExpertStore();  // CHECKs that no lease is left

  // `experts`: distinct, rising; they outlive the batch.
  ExpertBatch acquire(LayerId layer, std::span<const ExpertId> experts);

  struct Stats {
    uint64_t hits = 0, misses = 0;
    uint64_t bytes_read = 0;  // aligned bytes asked of the drive
  };
  Stats stats() const;

 private:
  friend class ExpertLease;
  friend class ExpertBatch;
  struct Impl;
  explicit ExpertStore(std::unique_ptr<Impl> impl);
  Result<ExpertLease> lease(ExpertKey key);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
