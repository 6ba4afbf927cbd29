// Spine matrices against the files' bytes: pinned, streamed, in several pieces, and damaged files.
#include "store/spine_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"
#include "store/tiny_model.h"

namespace sluice {
namespace {

LayerId layer_id(int64_t layer) { return {static_cast<int32_t>(layer)}; }

// A plan that pins the layers for which `pinned` says so.
template <class Pinned>
MemoryPlan plan_of(const Checkpoint& checkpoint, Pinned pinned, int64_t ring_slots = 1) {
  MemoryPlan plan;
  for (int64_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
    plan.layer_pinned.push_back(pinned(layer));
    if (plan.layer_pinned.back()) continue;
    plan.ring_slots = ring_slots;
    plan.ring_slot_bytes =
        std::max(plan.ring_slot_bytes, spine_slot_bytes(checkpoint, layer_id(layer)));
  }
  return plan;
}

bool all(int64_t) { return true; }
bool none(int64_t) { return false; }
bool odd(int64_t layer) { return layer % 2 == 1; }

std::unique_ptr<SpineStore> open_store(const Checkpoint& checkpoint, const MemoryPlan& plan) {
  auto store = SpineStore::open(checkpoint, plan);
  if (!store.ok()) {
    ADD_FAILURE() << store.error().what;
    std::abort();
  }
  return std::move(store).value();
}

SpineLease acquire(SpineStore& store, int64_t layer) {
  auto lease = store.acquire(layer_id(layer));
  if (!lease.ok()) {
    ADD_FAILURE() << lease.error().what;
    std::abort();
  }
  return std::move(lease).value();
}

// Compares every matrix of the layer with the file; returns how many there are.
int64_t expect_layer_as_stored(const Checkpoint& checkpoint, int64_t layer,
                               const SpineLease& lease) {
  int64_t n_matrices = 0;
  for (size_t r = 0; r < kRoles; ++r) {
    const Role role = static_cast<Role>(r);
    const TensorRef& tensor = checkpoint.tensor(layer_id(layer), role);
    if (!tensor.present() || tensor.kind != TensorKind::kMatrix) continue;
    ++n_matrices;
    const StoredMatrix matrix = lease.matrix(role);
    EXPECT_EQ(matrix.dtype, tensor.dtype);
    EXPECT_EQ(matrix.rows, tensor.rows);
    EXPECT_EQ(matrix.cols, tensor.cols);
    EXPECT_EQ(matrix.scales, nullptr);
    const auto want = file_bytes(checkpoint.file(tensor.file), tensor.offset, tensor.bytes);
    EXPECT_EQ(std::memcmp(matrix.data, want.data(), want.size()), 0)
        << "layer " << layer << " role " << r;
  }
  return n_matrices;
}

void expect_all_layers_as_stored(Direct direct, const auto& pinned) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), direct);
  const auto store = open_store(checkpoint, plan_of(checkpoint, pinned));
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (int64_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
      const SpineLease lease = acquire(*store, layer);
      EXPECT_GE(expect_layer_as_stored(checkpoint, layer, lease), 5);
    }
  }
}

TEST(SpineStore, PinnedLayersAreTheFilesBytes) {
  expect_all_layers_as_stored(Direct::kAuto, all);
  expect_all_layers_as_stored(Direct::kOff, all);
}

TEST(SpineStore, StreamedLayersAreTheFilesBytes) {
  expect_all_layers_as_stored(Direct::kAuto, none);
  expect_all_layers_as_stored(Direct::kOff, none);
}

TEST(SpineStore, HalfPinnedLayersAreTheFilesBytes) {
  expect_all_layers_as_stored(Direct::kAuto, odd);
  expect_all_layers_as_stored(Direct::kOff, odd);
}

// [first, last] matrix of layer 1 as the bundled model stores them, in one stretch.
uint64_t stretch_bytes(const Checkpoint& checkpoint, Role first, Role last) {
  const TensorRef& begin = checkpoint.tensor(layer_id(1), first);
  const TensorRef& end = checkpoint.tensor(layer_id(1), last);
  return end.offset + end.bytes - begin.offset;
}

TEST(SpineStore, NeighboursAreReadTogether) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  EXPECT_EQ(spine_slot_bytes(checkpoint, layer_id(1)),
            slot_bytes(stretch_bytes(checkpoint, Role::kRouter, Role::kVProj)));
}

// Takes a tensor out of `from` and puts it last in `to`, which may be `from`.
void move_to_end(const std::string& name, RawSafetensors& from, RawSafetensors& to) {
  using Range = std::pair<uint64_t, uint64_t>;
  Json entry = from.header[name];
  const auto [begin, end] = entry["data_offsets"].get<Range>();
  const std::string bytes = from.payload.substr(begin, end - begin);
  from.header.erase(name);
  from.payload.erase(begin, bytes.size());
  for (auto& [other, info] : from.header.items()) {
    if (other == "__metadata__") continue;
    const auto range = info["data_offsets"].get<Range>();
    if (range.first < end) continue;
    info["data_offsets"] = Range(range.first - bytes.size(), range.second - bytes.size());
  }
  entry["data_offsets"] = Range(to.payload.size(), to.payload.size() + bytes.size());
  to.header[name] = entry;
  to.payload += bytes;
}

// o_proj and f_a_proj behind the experts, k_proj in a shard of its own.
TEST(SpineStore, ALayerThatLiesInSeveralPiecesIsReadPieceByPiece) {
  const TinyCopy copy;
  const std::string attention = "language_model.model.layers.1.self_attn.";
  RawSafetensors extra{Json::object(), ""};
  edit_safetensors(copy.own_shard(2), [&](RawSafetensors& shard) {
    move_to_end(attention + "o_proj.weight", shard, shard);
    move_to_end(attention + "f_a_proj.weight", shard, shard);
    move_to_end(attention + "k_proj.weight", shard, extra);
  });
  write_raw_safetensors(copy.path() / "extra.safetensors", dump_json(extra.header), extra.payload);
  edit_json(copy.own("model.safetensors.index.json"), [&](Json& index) {
    index["weight_map"][attention + "k_proj.weight"] = "extra.safetensors";
  });
  const Checkpoint checkpoint = open_checkpoint(copy.path(), Direct::kAuto);
  EXPECT_EQ(spine_slot_bytes(checkpoint, layer_id(1)),
            slot_bytes(stretch_bytes(checkpoint, Role::kRouter, Role::kVProj)) +
                slot_bytes(stretch_bytes(checkpoint, Role::kOProj, Role::kFAProj)) +
                slot_bytes(stretch_bytes(checkpoint, Role::kKProj, Role::kKProj)));
  for (const auto pinned : {all, none}) {
    const auto store = open_store(checkpoint, plan_of(checkpoint, pinned));
    for (int64_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
      const SpineLease lease = acquire(*store, layer);
      expect_layer_as_stored(checkpoint, layer, lease);
    }
  }
}

TEST(SpineStore, PinnedLayersAreReadOnceAndStreamedOnesEachTime) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const auto store = open_store(checkpoint, plan_of(checkpoint, odd));
  const uint64_t at_open = store->bytes_read();
  EXPECT_GT(at_open, 0u);
  { const SpineLease lease = acquire(*store, 1); }
  EXPECT_EQ(store->bytes_read(), at_open);
  { const SpineLease lease = acquire(*store, 0); }
  const uint64_t first = store->bytes_read() - at_open;
  EXPECT_GT(first, 0u);
  EXPECT_LE(first, spine_slot_bytes(checkpoint, layer_id(0)));
  { const SpineLease lease = acquire(*store, 0); }  // still in the only slot
  EXPECT_EQ(store->bytes_read(), at_open + first);
  { const SpineLease lease = acquire(*store, 2); }
  const uint64_t both = store->bytes_read();
  { const SpineLease lease = acquire(*store, 0); }
  EXPECT_EQ(store->bytes_read(), both + first);
}

TEST(SpineStore, DirectIsWhatTheFilesGot) {
  const Checkpoint buffered = open_checkpoint(tiny_k3(), Direct::kOff);
  EXPECT_FALSE(open_store(buffered, plan_of(buffered, none))->direct());
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const auto store = open_store(checkpoint, plan_of(checkpoint, all));
  const bool files_direct = std::ranges::all_of(checkpoint.files(), &File::direct);
  EXPECT_EQ(store->direct(), files_direct);
}

TEST(SpineStore, ALeaseKeepsItsLayerWhileTheOtherSlotsTurn) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const auto store = open_store(checkpoint, plan_of(checkpoint, none, /*ring_slots=*/2));
  SpineLease first = acquire(*store, 0);
  const SpineLease kept = std::move(first);
  for (int64_t layer = 1; layer < checkpoint.config().n_layers; ++layer) {
    const SpineLease lease = acquire(*store, layer);
    expect_layer_as_stored(checkpoint, layer, lease);
    expect_layer_as_stored(checkpoint, 0, kept);
  }
}

TEST(SpineStore, ATruncatedFileIsAnErrorThatNamesItAndTheStoreGoesOn) {
  const TinyCopy copy;
  copy.own_shard(4);
  const Checkpoint checkpoint = open_checkpoint(copy.path(), Direct::kAuto);
  const auto store = open_store(checkpoint, plan_of(checkpoint, none));
  const TensorRef& tensor = checkpoint.tensor(layer_id(3), Role::kOProj);
  const std::string path = checkpoint.file(tensor.file).path();
  { const SpineLease lease = acquire(*store, 0); }
  Truncation truncation(path, tensor.offset + tensor.bytes / 2);
  {
    const auto lease = store->acquire(layer_id(3));
    ASSERT_FALSE(lease.ok());
    EXPECT_EQ(lease.error().code, Code::kCorrupt);
    EXPECT_NE(lease.error().what.find(path), std::string::npos) << lease.error().what;
    EXPECT_NE(lease.error().what.find("offset"), std::string::npos) << lease.error().what;
  }
  // The failed read took over the slot: what it held before must be read again.
  for (const int64_t layer : {0, 1}) {
    const SpineLease lease = acquire(*store, layer);
    expect_layer_as_stored(checkpoint, layer, lease);
  }
  EXPECT_FALSE(SpineStore::open(checkpoint, plan_of(checkpoint, all)).ok());
  truncation.restore();
  const SpineLease lease = acquire(*store, 3);
  expect_layer_as_stored(checkpoint, 3, lease);
}

TEST(SpineStoreDeathTest, MisuseAborts) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  EXPECT_DEATH(
      {
        auto store = open_store(checkpoint, plan_of(checkpoint, all));
        const SpineLease lease = acquire(*store, 0);
        store.reset();
      },
      "check failed: impl_->n_leases == 0");
  EXPECT_DEATH(
      {
        const auto store = open_store(checkpoint, plan_of(checkpoint, none));
        const SpineLease lease = acquire(*store, 0);
        const SpineLease second = acquire(*store, 1);
      },
      "check failed: slot >= 0");
  EXPECT_DEATH(
      {
        const auto store = open_store(checkpoint, plan_of(checkpoint, all));
        const SpineLease lease = acquire(*store, 0);
        static_cast<void>(lease.matrix(Role::kInputLayernorm));
      },
      "check failed: tensor.present");
}

}  // namespace
}  // namespace sluice
