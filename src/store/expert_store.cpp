// Slots in one buffer, a flat index from expert to slot, and the unleased slots in a list from the
// least to the most recently used. Misses are read on the thread that asks.
#include "store/expert_store.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "base/aligned_buffer.h"
#include "io/file.h"
#include "store/read_retry.h"

namespace sluice {
namespace {

constexpr int64_t kNone = -1;

struct Slot {
  int64_t key = kNone;  // index of the expert whose record it holds
  const std::byte* record = nullptr;
  int64_t n_leases = 0;
  int64_t older = kNone, newer = kNone;  // neighbours in the list while n_leases is 0
};

// Unleased slots from the next victim to the last used one. Links live in the slots.
class EvictionList {
 public:
  explicit EvictionList(std::vector<Slot>& slots) : slots_(slots) {}

  int64_t oldest() const { return oldest_; }

  void push_newest(int64_t slot) {
    at(slot).older = newest_;
    at(slot).newer = kNone;
    (newest_ == kNone ? oldest_ : at(newest_).newer) = slot;
    newest_ = slot;
  }

  void remove(int64_t slot) {
    const Slot& gone = at(slot);
    (gone.older == kNone ? oldest_ : at(gone.older).newer) = gone.newer;
    (gone.newer == kNone ? newest_ : at(gone.newer).older) = gone.older;
  }

 private:
  Slot& at(int64_t slot) { return slots_[static_cast<size_t>(slot)]; }

  std::vector<Slot>& slots_;
  int64_t oldest_ = kNone, newest_ = kNone;
};

}  // namespace

struct ExpertStore::Impl {
  Impl(const Checkpoint& c, int64_t n_slots)
      : checkpoint(c),
        slot_bytes(expert_slot_bytes(c)),
        memory(static_cast<uint64_t>(n_slots) * slot_bytes),
        slots(static_cast<size_t>(n_slots)),
        slot_of(static_cast<size_t>(c.config().n_layers * c.config().moe.n_experts), kNone),
        unleased(slots) {
    for (int64_t slot = 0; slot < n_slots; ++slot) unleased.push_newest(slot);
  }

  Slot& at(int64_t slot) { return slots[static_cast<size_t>(slot)]; }

  int64_t index(ExpertKey key) const {
    return int64_t{key.layer.v} * checkpoint.config().moe.n_experts + key.expert.v;
  }

  // Reads the expert over the oldest unleased slot, which stays in the list, as the next victim
  // should the read fail.
  Result<int64_t> load(ExpertKey key) {
    const ExpertRef ref = checkpoint.expert(key);
    const int64_t victim = unleased.oldest();
    CHECK(victim != kNone);  // every slot is leased: too many leases live at once
    Slot& slot = at(victim);
    if (slot.key != kNone) slot_of[static_cast<size_t>(slot.key)] = kNone;
    slot.key = kNone;
    const auto bytes =
        memory.bytes().subspan(static_cast<uint64_t>(victim) * slot_bytes, slot_bytes);
    TRY(const auto record, read_retry(checkpoint.file(ref.file), ref.offset,
                                      checkpoint.expert_layout().record_bytes, bytes, bytes_read));
    slot.record = record.data();
    slot.key = index(key);
    slot_of[static_cast<size_t>(slot.key)] = victim;
    return victim;
  }

  void hold(int64_t slot) {
    if (at(slot).n_leases++ == 0) unleased.remove(slot);
    ++n_leases;
  }

  void release(int64_t slot) {
    if (--at(slot).n_leases == 0) unleased.push_newest(slot);
    --n_leases;
  }

  const Checkpoint& checkpoint;
  const uint64_t slot_bytes;
  AlignedBuffer memory;  // [slots][slot_bytes]
  std::vector<Slot> slots;
  std::vector<int64_t> slot_of;  // [n_layers * n_experts], kNone when not resident
  EvictionList unleased;
  int64_t n_leases = 0;
  uint64_t hits = 0, misses = 0;
  std::atomic<uint64_t> bytes_read{0};
};

uint64_t expert_slot_bytes(const Checkpoint& checkpoint) {
  const uint64_t record_bytes = checkpoint.expert_layout().record_bytes;
  return record_bytes == 0 ? 0 : slot_bytes(record_bytes);
}

ExpertStore::ExpertStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ExpertStore::~ExpertStore() { CHECK(impl_->n_leases == 0); }

Result<std::unique_ptr<ExpertStore>> ExpertStore::open(const Checkpoint& checkpoint,
                                                       int64_t slots) {
  CHECK(slots >= (expert_slot_bytes(checkpoint) == 0 ? 0 : kSlotsMin));
  return std::unique_ptr<ExpertStore>(new ExpertStore(std::make_unique<Impl>(checkpoint, slots)));
}

ExpertBatch ExpertStore::acquire(LayerId layer, std::span<const ExpertId> experts) {
  CHECK(std::ranges::adjacent_find(experts, std::greater_equal<>{}) == experts.end());
  return ExpertBatch(this, layer, experts);
}

Result<ExpertLease> ExpertStore::lease(ExpertKey key) {
  CHECK(key.layer.v >= 0 && key.layer.v < impl_->checkpoint.config().n_layers);
  CHECK(key.expert.v >= 0 && key.expert.v < impl_->checkpoint.config().moe.n_experts);
  int64_t slot = impl_->slot_of[static_cast<size_t>(impl_->index(key))];
  if (slot != kNone) {
    ++impl_->hits;
  } else {
    ++impl_->misses;
    TRY(slot, impl_->load(key));
  }
  return ExpertLease(this, slot, key.expert, impl_->at(slot).record);
}

ExpertStore::Stats ExpertStore::stats() const {
  return {.hits = impl_->hits, .misses = impl_->misses, .bytes_read = impl_->bytes_read};
}

ExpertBatch::ExpertBatch(ExpertStore* store, LayerId layer, std::span<const ExpertId> experts)
    : store_(store), layer_(layer), experts_(experts) {}

Result<std::optional<ExpertLease>> ExpertBatch::next() {
  CHECK(store_ != nullptr);  // dead after an error
  if (taken_ == experts_.size()) return std::optional<ExpertLease>();
  auto lease = store_->lease({layer_, experts_[taken_++]});
  if (!lease.ok()) {
    store_ = nullptr;
    return lease.error();
  }
  return std::optional<ExpertLease>(std::move(lease).value());
}

ExpertLease::ExpertLease(ExpertStore* store, int64_t slot, ExpertId expert, const std::byte* record)
    : store_(store), slot_(slot), expert_(expert), record_(record) {
  store_->impl_->hold(slot_);
}

ExpertLease::ExpertLease(ExpertLease&& o) noexcept
    : store_(std::exchange(o.store_, nullptr)),
      slot_(o.slot_),
      expert_(o.expert_),
      record_(o.record_) {}

ExpertLease::~ExpertLease() {
  if (store_ != nullptr) store_->impl_->release(slot_);
}

}  // namespace sluice
