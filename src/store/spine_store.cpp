// Plain synchronous reads: one slot at a time, range by range, on the thread that acquires.
#include "store/spine_store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "io/file.h"
#include "store/read_retry.h"

namespace sluice {
namespace {

// Matrices whose gap in the file is at most this are read together: passing over 64 KiB costs a
// drive less than another request.
constexpr uint64_t kGapBytesMax = 64 * 1024;

// One read: a range of a file, and the page-aligned piece of the slot that takes it.
struct ReadRange {
  const File* file = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t slot_offset = 0;  // the piece is slot_bytes(bytes) long
  uint64_t end() const { return offset + bytes; }
  // Where the file's byte `at` comes to lie: File::read_direct keeps an offset's place in its page.
  uint64_t place_of(uint64_t at) const { return slot_offset + offset % kPageBytes + at - offset; }
};

// Where the matrices of one layer lie, in the files and in a slot.
struct LayerMap {
  std::vector<ReadRange> ranges;               // rising (file, offset)
  std::array<uint64_t, kRoles> slot_offset{};  // of the first byte of each role's matrix
  uint64_t slot_bytes = 0;
};

std::vector<Role> matrix_roles(const Checkpoint& checkpoint, LayerId layer) {
  std::vector<Role> roles;
  for (size_t r = 0; r < kRoles; ++r) {
    const TensorRef& tensor = checkpoint.tensor(layer, static_cast<Role>(r));
    if (tensor.present() && tensor.kind == TensorKind::kMatrix) {
      roles.push_back(static_cast<Role>(r));
    }
  }
  return roles;
}

LayerMap map_snapshot_layer(const Checkpoint& checkpoint, LayerId layer) {
  std::vector<Role> roles = matrix_roles(checkpoint, layer);
  const auto place = [&](Role role) {
    const TensorRef& tensor = checkpoint.tensor(layer, role);
    return std::pair(tensor.file, tensor.offset);
  };
  std::ranges::sort(roles, {}, place);

  LayerMap map;
  std::array<size_t, kRoles> range_of{};
  for (const Role role : roles) {
    const TensorRef& tensor = checkpoint.tensor(layer, role);
    const File* file = &checkpoint.file(tensor.file);
    const bool near = !map.ranges.empty() && map.ranges.back().file == file &&
                      tensor.offset <= map.ranges.back().end() + kGapBytesMax;
    if (!near) map.ranges.push_back({.file = file, .offset = tensor.offset});
    ReadRange& range = map.ranges.back();
    range.bytes = std::max(range.end(), tensor.offset + tensor.bytes) - range.offset;
    range_of[static_cast<size_t>(role)] = map.ranges.size() - 1;
  }
  for (ReadRange& range : map.ranges) {
    range.slot_offset = map.slot_bytes;
    map.slot_bytes += slot_bytes(range.bytes);
  }
  for (const Role role : roles) {
    const ReadRange& range = map.ranges[range_of[static_cast<size_t>(role)]];
    map.slot_offset[static_cast<size_t>(role)] =
        range.place_of(checkpoint.tensor(layer, role).offset);
  }
  return map;
}

// A pack has the matrices of a layer in one stretch.
LayerMap map_pack_layer(const PackFile& pack, LayerId layer) {
  const PackGroup& group = pack.layout().layer(layer);
  const ReadRange range{
      .file = &pack.file(), .offset = group.offset, .bytes = group.matrix_bytes, .slot_offset = 0};
  LayerMap map{.ranges = {range}, .slot_bytes = slot_bytes(range.bytes)};
  for (const PackTensor& tensor : group.tensors) {
    if (tensor.kind != TensorKind::kMatrix) continue;
    map.slot_offset[static_cast<size_t>(tensor.role)] = range.place_of(tensor.offset);
  }
  return map;
}

LayerMap map_layer(const Checkpoint& checkpoint, LayerId layer, const PackFile* pack) {
  return pack ? map_pack_layer(*pack, layer) : map_snapshot_layer(checkpoint, layer);
}

// Memory for one streamed layer at a time.
struct RingSlot {
  AlignedBuffer memory;
  LayerId layer;  // whose matrices it holds; -1 for none
  int64_t n_leases = 0;
};

size_t index(LayerId layer) { return static_cast<size_t>(layer.v); }

}  // namespace

struct SpineStore::Impl {
  Impl(const Checkpoint& c, const PackFile* p) : checkpoint(c), pack(p) {}

  // Fills `slot` with the matrices of `layer`. What a pack gives is checked the first time, and
  // read once more when it is wrong.
  Status read(LayerId layer, const AlignedBuffer& slot) {
    TRY_OK(read_ranges(layer, slot));
    if (pack == nullptr || checked[index(layer)]) return Ok{};
    if (!check(layer, slot).ok()) {
      TRY_OK(read_ranges(layer, slot));
      TRY_OK(check(layer, slot));
    }
    checked[index(layer)] = true;
    return Ok{};
  }

  Status read_ranges(LayerId layer, const AlignedBuffer& slot) {
    for (const ReadRange& range : maps[index(layer)].ranges) {
      const auto piece = slot.bytes().subspan(range.slot_offset, slot_bytes(range.bytes));
      TRY_OK(read_retry(*range.file, range.offset, range.bytes, piece, bytes_read));
    }
    return Ok{};
  }

  Status check(LayerId layer, const AlignedBuffer& slot) const {
    const LayerMap& map = maps[index(layer)];
    for (const PackTensor& tensor : pack->layout().layer(layer).tensors) {
      if (tensor.kind != TensorKind::kMatrix) continue;
      const uint64_t place = map.slot_offset[static_cast<size_t>(tensor.role)];
      TRY_OK(pack->check(tensor, slot.bytes().subspan(place, tensor.bytes)));
    }
    return Ok{};
  }

  // The slot that holds `layer`, or the next one in turn that no lease holds.
  int32_t choose_slot(LayerId layer) {
    const auto holds = [layer](const RingSlot& slot) { return slot.layer == layer; };
    const auto found = std::ranges::find_if(ring, holds);
    if (found != ring.end()) return static_cast<int32_t>(found - ring.begin());
    for (size_t tried = 0; tried < ring.size(); ++tried) {
      const size_t slot = next_slot;
      next_slot = (next_slot + 1) % ring.size();
      if (ring[slot].n_leases == 0) return static_cast<int32_t>(slot);
    }
    return -1;
  }

  const Checkpoint& checkpoint;
  const PackFile* pack;               // null: the snapshot's own matrices
  std::vector<LayerMap> maps;         // [n_layers]
  std::vector<bool> checked;          // [n_layers] whether the pack's checksums were seen right
  std::vector<AlignedBuffer> pinned;  // [n_layers], empty for a streamed layer
  std::vector<RingSlot> ring;
  size_t next_slot = 0;
  int64_t n_leases = 0;
  std::atomic<uint64_t> bytes_read{0};
};

uint64_t spine_slot_bytes(const Checkpoint& checkpoint, LayerId layer, const PackFile* pack) {
  return map_layer(checkpoint, layer, pack).slot_bytes;
}

SpineStore::SpineStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SpineStore::~SpineStore() { CHECK(impl_->n_leases == 0); }

Result<std::unique_ptr<SpineStore>> SpineStore::open(const Checkpoint& checkpoint,
                                                     const MemoryPlan& plan, const PackFile* pack) {
  const int64_t n_layers = checkpoint.config().n_layers;
  CHECK(static_cast<int64_t>(plan.layer_pinned.size()) == n_layers);
  auto impl = std::make_unique<Impl>(checkpoint, pack);
  impl->pinned.resize(plan.layer_pinned.size());
  impl->checked.resize(plan.layer_pinned.size());
  for (LayerId layer{0}; layer.v < n_layers; ++layer.v) {
    const LayerMap& map = impl->maps.emplace_back(map_layer(checkpoint, layer, pack));
    if (plan.layer_pinned[index(layer)]) {
      impl->pinned[index(layer)] = AlignedBuffer(map.slot_bytes);
      TRY_OK(impl->read(layer, impl->pinned[index(layer)]));
    } else {
      CHECK(plan.ring_slots > 0 && map.slot_bytes <= plan.ring_slot_bytes);
    }
  }
  for (int64_t slot = 0; slot < plan.ring_slots; ++slot) {
    impl->ring.push_back({.memory = AlignedBuffer(plan.ring_slot_bytes), .layer = {}});
  }
  return std::unique_ptr<SpineStore>(new SpineStore(std::move(impl)));
}

Result<SpineLease> SpineStore::acquire(LayerId layer) {
  CHECK(layer.v >= 0 && index(layer) < impl_->maps.size());
  if (impl_->pinned[index(layer)].size() > 0) return SpineLease(this, layer, /*slot=*/-1);
  const int32_t slot = impl_->choose_slot(layer);
  CHECK(slot >= 0);  // at most ring_slots leases of streamed layers may live
  RingSlot& taken = impl_->ring[static_cast<size_t>(slot)];
  if (taken.layer != layer) {
    taken.layer = {};  // a failed read leaves the slot with nothing
    TRY_OK(impl_->read(layer, taken.memory));
    taken.layer = layer;
  }
  return SpineLease(this, layer, slot);
}

uint64_t SpineStore::bytes_read() const { return impl_->bytes_read; }

bool SpineStore::direct() const {
  for (const LayerMap& map : impl_->maps) {
    for (const ReadRange& range : map.ranges) {
      if (!range.file->direct()) return false;
    }
  }
  return true;
}

SpineLease::SpineLease(SpineStore* store, LayerId layer, int32_t slot)
    : store_(store), layer_(layer), slot_(slot) {
  ++store_->impl_->n_leases;
  if (slot_ >= 0) ++store_->impl_->ring[static_cast<size_t>(slot_)].n_leases;
}

SpineLease::SpineLease(SpineLease&& o) noexcept
    : store_(std::exchange(o.store_, nullptr)), layer_(o.layer_), slot_(o.slot_) {}

SpineLease::~SpineLease() {
  if (store_ == nullptr) return;
  --store_->impl_->n_leases;
  if (slot_ >= 0) --store_->impl_->ring[static_cast<size_t>(slot_)].n_leases;
}

StoredMatrix SpineLease::matrix(Role role) const {
  const SpineStore::Impl& impl = *store_->impl_;
  const TensorRef& tensor = impl.checkpoint.tensor(layer_, role);
  CHECK(tensor.present() && tensor.kind == TensorKind::kMatrix);
  const AlignedBuffer& memory =
      slot_ < 0 ? impl.pinned[index(layer_)] : impl.ring[static_cast<size_t>(slot_)].memory;
  StoredMatrix matrix{
      .dtype = tensor.dtype,
      .data = memory.data() + impl.maps[index(layer_)].slot_offset[static_cast<size_t>(role)],
      .rows = tensor.rows,
      .cols = tensor.cols};
  if (impl.pack == nullptr) return matrix;
  const PackTensor& packed = *impl.pack->tensor(layer_, role);
  matrix.dtype = packed.dtype;
  if (packed.has_scales()) matrix.scales = matrix.data + packed.scales_at();
  return matrix;
}

}  // namespace sluice
