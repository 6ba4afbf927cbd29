// Expert records against the files' bytes, LRU against a plain list, leases, and damaged files.
#include "store/expert_store.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "format/tiny_copy.h"
#include "store/tiny_model.h"

namespace sluice {
namespace {

std::unique_ptr<ExpertStore> open_store(const Checkpoint& checkpoint, int64_t slots) {
  auto store = ExpertStore::open(checkpoint, slots);
  if (!store.ok()) {
    ADD_FAILURE() << store.error().what;
    std::abort();
  }
  return std::move(store).value();
}

std::vector<LayerId> moe_layers(const Checkpoint& checkpoint) {
  std::vector<LayerId> layers;
  for (LayerId layer{0}; layer.v < checkpoint.config().n_layers; ++layer.v) {
    if (checkpoint.config().is_moe(layer)) layers.push_back(layer);
  }
  return layers;
}

std::vector<ExpertId> all_experts(const Checkpoint& checkpoint) {
  std::vector<ExpertId> experts;
  for (ExpertId expert{0}; expert.v < checkpoint.config().moe.n_experts; ++expert.v) {
    experts.push_back(expert);
  }
  return experts;
}

std::vector<std::byte> stored_record(const Checkpoint& checkpoint, ExpertKey key) {
  const ExpertRef ref = checkpoint.expert(key);
  return file_bytes(checkpoint.file(ref.file), ref.offset, checkpoint.expert_layout().record_bytes);
}

bool holds(const ExpertLease& lease, const std::vector<std::byte>& record) {
  return std::memcmp(lease.record(), record.data(), record.size()) == 0;
}

std::optional<ExpertLease> take(ExpertBatch& batch) {
  auto lease = batch.next();
  if (!lease.ok()) {
    ADD_FAILURE() << lease.error().what;
    std::abort();
  }
  return std::move(lease).value();
}

ExpertLease take_one(ExpertStore& store, LayerId layer, ExpertId expert) {
  ExpertBatch batch = store.acquire(layer, std::span(&expert, 1));
  return *take(batch);
}

// Hands out all `experts` of the layer, compares each with the file and lets it go.
void sweep(const Checkpoint& checkpoint, ExpertStore& store, LayerId layer,
           std::span<const ExpertId> experts) {
  ExpertBatch batch = store.acquire(layer, experts);
  for (const ExpertId expert : experts) {
    const std::optional<ExpertLease> lease = take(batch);
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->expert(), expert);
    EXPECT_TRUE(holds(*lease, stored_record(checkpoint, {layer, expert})))
        << "layer " << layer.v << " expert " << expert.v;
  }
  EXPECT_FALSE(take(batch));
  EXPECT_FALSE(take(batch));
}

TEST(ExpertStore, RecordsAreTheFilesBytesWithTwoEightAndAllSlots) {
  for (const Direct direct : {Direct::kAuto, Direct::kOff}) {
    const Checkpoint checkpoint = open_checkpoint(tiny_k3(), direct);
    const auto layers = moe_layers(checkpoint);
    const auto experts = all_experts(checkpoint);
    const int64_t n_experts = static_cast<int64_t>(layers.size() * experts.size());
    ASSERT_GT(n_experts, 8);
    for (const int64_t slots : {int64_t{2}, int64_t{8}, n_experts}) {
      const auto store = open_store(checkpoint, slots);
      for (int pass = 0; pass < 2; ++pass) {
        for (const LayerId layer : layers) sweep(checkpoint, *store, layer, experts);
      }
      // A sweep wider than the cache defeats LRU; one that fits it misses once.
      const auto n = static_cast<uint64_t>(n_experts);
      EXPECT_EQ(store->stats().misses, slots == n_experts ? n : 2 * n);
      EXPECT_EQ(store->stats().hits, slots == n_experts ? n : 0);
    }
  }
}

TEST(ExpertStore, TheLeastRecentlyUsedGoesFirst) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const LayerId layer = moe_layers(checkpoint).front();
  const auto store = open_store(checkpoint, 3);
  const auto expect_use = [&](int32_t expert, bool hit) {
    const ExpertStore::Stats before = store->stats();
    { const ExpertLease lease = take_one(*store, layer, {expert}); }
    const ExpertStore::Stats after = store->stats();
    EXPECT_EQ(after.hits - before.hits, hit ? 1u : 0u) << expert;
    EXPECT_EQ(after.misses - before.misses, hit ? 0u : 1u) << expert;
    EXPECT_EQ(after.bytes_read > before.bytes_read, !hit);
    EXPECT_LE(after.bytes_read - before.bytes_read, expert_slot_bytes(checkpoint));
  };
  for (const int32_t expert : {0, 1, 2}) expect_use(expert, /*hit=*/false);
  for (const int32_t expert : {1, 0, 2}) expect_use(expert, /*hit=*/true);
  expect_use(3, /*hit=*/false);  // takes 1's slot
  expect_use(0, /*hit=*/true);
  expect_use(2, /*hit=*/true);
  expect_use(1, /*hit=*/false);  // takes 3's slot
  expect_use(0, /*hit=*/true);
  expect_use(3, /*hit=*/false);
}

TEST(ExpertStore, MatchesAListThatIsSearched) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const auto layers = moe_layers(checkpoint);
  constexpr size_t kSlots = 7;
  const auto store = open_store(checkpoint, kSlots);
  std::vector<ExpertKey> model;  // least recently used first
  uint64_t hits = 0;
  std::mt19937 random(3);
  for (int step = 0; step < 3000; ++step) {
    const ExpertKey key{layers[random() % 2], {static_cast<int32_t>(random() % 6)}};
    { const ExpertLease lease = take_one(*store, key.layer, key.expert); }
    const auto found = std::ranges::find(model, key);
    if (found != model.end()) {
      ++hits;
      model.erase(found);
    } else if (model.size() == kSlots) {
      model.erase(model.begin());
    }
    model.push_back(key);
    ASSERT_EQ(store->stats().hits, hits) << step;
  }
  EXPECT_EQ(store->stats().hits + store->stats().misses, 3000u);
  EXPECT_GT(store->stats().misses, 1000u);
}

TEST(ExpertStore, ALeaseKeepsItsRecordWhileTheCacheChurns) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const auto layers = moe_layers(checkpoint);
  const auto experts = all_experts(checkpoint);
  const auto store = open_store(checkpoint, 3);
  ExpertLease first = take_one(*store, layers[0], experts[1]);
  const ExpertLease kept = std::move(first);
  const ExpertLease twin = take_one(*store, layers[0], experts[1]);
  EXPECT_EQ(twin.record(), kept.record());
  const auto record = stored_record(checkpoint, {layers[0], experts[1]});
  for (const LayerId layer : layers) {
    sweep(checkpoint, *store, layer, experts);
    EXPECT_TRUE(holds(kept, record));
  }
}

TEST(ExpertStore, ATruncatedFileIsAnErrorThatNamesItAndTheStoreGoesOn) {
  const TinyCopy copy;
  copy.own_shard(3);
  const Checkpoint checkpoint = open_checkpoint(copy.path(), Direct::kAuto);
  const auto layers = moe_layers(checkpoint);
  const auto experts = all_experts(checkpoint);
  const auto store = open_store(checkpoint, 2);
  const LayerId bad = layers[1];
  const ExpertRef ref = checkpoint.expert({bad, experts[0]});
  const uint64_t record_bytes = checkpoint.expert_layout().record_bytes;
  const std::string path = checkpoint.file(ref.file).path();
  ASSERT_NE(path, checkpoint.file(checkpoint.expert({layers[0], experts[0]}).file).path());
  sweep(checkpoint, *store, layers[0], std::span(experts).first(2));

  Truncation truncation(path, ref.offset + record_bytes / 2);
  const uint64_t read_before = store->stats().bytes_read;
  for (int attempt = 0; attempt < 3; ++attempt) {
    ExpertBatch batch = store->acquire(bad, experts);
    const auto lease = batch.next();
    ASSERT_FALSE(lease.ok());
    EXPECT_EQ(lease.error().code, Code::kCorrupt);
    EXPECT_NE(lease.error().what.find(path), std::string::npos) << lease.error().what;
    EXPECT_NE(lease.error().what.find("offset"), std::string::npos) << lease.error().what;
  }
  // A failed read is tried once more.
  const uint64_t hull_bytes = round_up(ref.offset % kPageBytes + record_bytes, kPageBytes);
  EXPECT_EQ(store->stats().bytes_read - read_before, 3 * 2 * hull_bytes);
  // Only the first slot was given up, and it does not claim to hold anything.
  const ExpertStore::Stats before = store->stats();
  { const ExpertLease lease = take_one(*store, layers[0], experts[1]); }
  EXPECT_EQ(store->stats().hits, before.hits + 1);
  for (const LayerId layer : layers) {
    if (layer != bad) sweep(checkpoint, *store, layer, experts);
  }
  truncation.restore();
  for (const LayerId layer : layers) sweep(checkpoint, *store, layer, experts);
}

TEST(ExpertStore, NothingAskedIsNothingRead) {
  const Checkpoint checkpoint = open_checkpoint(tiny_k3(), Direct::kAuto);
  const auto store = open_store(checkpoint, 2);
  ExpertBatch batch = store->acquire(moe_layers(checkpoint).front(), {});
  EXPECT_FALSE(take(batch));
  EXPECT_EQ(store->stats().misses, 0u);
  EXPECT_EQ(store->stats().bytes_read, 0u);
}

TEST(ExpertStoreDeathTest, MisuseAborts) {
  const TinyCopy copy;
  copy.own_shard(2);
  const Checkpoint checkpoint = open_checkpoint(copy.path(), Direct::kAuto);
  const LayerId layer = moe_layers(checkpoint).front();
  const auto experts = all_experts(checkpoint);
  EXPECT_DEATH(
      {
        auto store = open_store(checkpoint, 2);
        const ExpertLease lease = take_one(*store, layer, experts[0]);
        store.reset();
      },
      "check failed: impl_->n_leases == 0");
  EXPECT_DEATH(
      {
        const auto store = open_store(checkpoint, 2);
        const ExpertLease a = take_one(*store, layer, experts[0]);
        const ExpertLease b = take_one(*store, layer, experts[1]);
        const ExpertLease c = take_one(*store, layer, experts[2]);
      },
      "check failed: victim != kNone");
  const std::vector<ExpertId> falling(experts.rbegin(), experts.rend());
  EXPECT_DEATH(static_cast<void>(open_store(checkpoint, 2)->acquire(layer, falling)),
               "check failed: std::ranges::adjacent_find");
  EXPECT_DEATH(static_cast<void>(ExpertStore::open(checkpoint, 1)), "check failed: slots >=");
  EXPECT_DEATH(
      {
        const Truncation truncation(
            checkpoint.file(checkpoint.expert({layer, experts[0]}).file).path(), 0);
        const auto store = open_store(checkpoint, 2);
        ExpertBatch batch = store->acquire(layer, experts);
        static_cast<void>(batch.next());
        static_cast<void>(batch.next());
      },
      "check failed: store_ != nullptr");
}

}  // namespace
}  // namespace sluice
