// Opening the leading layers of tiny-k3: shard L + 1 holds layer L, shard 10 all else.
#include "format/leading_layers.h"

#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "format/fingerprint.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

Result<Checkpoint> open_leading(const std::filesystem::path& path, int64_t n_layers) {
  return Checkpoint::open(path, Direct::kAuto, {.leading_layers = n_layers});
}

void lose(const TinyCopy& copy, std::initializer_list<int> shards) {
  for (const int shard : shards) std::filesystem::remove(copy.path() / TinyCopy::shard_name(shard));
}

TEST(LeadingLayers, OpenWithoutTheShardsOfLaterLayers) {
  const TinyCopy copy;
  lose(copy, {3, 4, 5, 6, 7, 8, 9});
  EXPECT_FALSE(copy.open().ok());
  const auto part = open_leading(copy.path(), kAll);
  ASSERT_TRUE(part.ok()) << part.error().what;
  const Checkpoint& checkpoint = part.value();
  EXPECT_EQ(checkpoint.config().n_layers, 2);
  EXPECT_EQ(checkpoint.n_layers_configured(), 9);
  EXPECT_EQ(checkpoint.files().size(), 3u);
  EXPECT_EQ(checkpoint.n_experts_total(), 48);
  // The tensors are those of the whole checkpoint.
  const Checkpoint whole = Checkpoint::open(tiny_k3(), Direct::kAuto).value();
  EXPECT_EQ(checkpoint.expert({LayerId{1}, ExpertId{7}}).offset,
            whole.expert({LayerId{1}, ExpertId{7}}).offset);
  EXPECT_EQ(checkpoint.layer_bytes(LayerId{1}), whole.layer_bytes(LayerId{1}));
  EXPECT_EQ(checkpoint.global(Role::kLmHead).offset, whole.global(Role::kLmHead).offset);
}

TEST(LeadingLayers, EndBeforeTheFirstMissingShard) {
  const TinyCopy copy;
  lose(copy, {5});
  const auto part = open_leading(copy.path(), kAll);
  ASSERT_TRUE(part.ok()) << part.error().what;
  EXPECT_EQ(part.value().config().n_layers, 4);
  EXPECT_EQ(part.value().config().layer_is_kda.size(), 4u);
}

TEST(LeadingLayers, MayBeFewerThanThereAre) {
  const auto part = open_leading(tiny_k3(), 3);
  ASSERT_TRUE(part.ok()) << part.error().what;
  EXPECT_EQ(part.value().config().n_layers, 3);
  EXPECT_EQ(part.value().files().size(), 4u);
}

TEST(LeadingLayers, HaveNoFingerprint) {
  const auto part = open_leading(tiny_k3(), kAll);
  ASSERT_TRUE(part.ok()) << part.error().what;
  EXPECT_EQ(part.value().config().n_layers, 9);
  const auto print = fingerprint(part.value());
  ASSERT_FALSE(print.ok());
  EXPECT_EQ(print.error().code, Code::kUnsupported);
}

TEST(LeadingLayers, NeedLayerZeroAndWhatIsOutsideTheLayers) {
  for (const int shard : {1, 10}) {
    const TinyCopy copy;
    lose(copy, {shard});
    const auto part = open_leading(copy.path(), kAll);
    ASSERT_FALSE(part.ok());
    EXPECT_EQ(part.error().code, Code::kIo);
    EXPECT_NE(part.error().what.find(TinyCopy::shard_name(shard)), std::string::npos);
  }
}

TEST(LeadingLayers, AreCheckedLikeAWholeCheckpoint) {
  const TinyCopy copy;
  lose(copy, {3, 4, 5, 6, 7, 8, 9});
  const std::string name = "language_model.model.layers.1.input_layernorm.weight";
  edit_safetensors(copy.own_shard(2), [&](RawSafetensors& raw) {
    Json entry = raw.header[name];
    raw.header.erase(name);
    raw.header["language_model.model.layers.1.surprise"] = entry;
  });
  const auto part = open_leading(copy.path(), kAll);
  ASSERT_FALSE(part.ok());
  EXPECT_NE(part.error().what.find("surprise"), std::string::npos);
}

TEST(LeadingLayers, EndBeforeALayerThatReachesIntoAMissingShard) {
  const TinyCopy copy;
  lose(copy, {9});
  const std::string name = "language_model.model.layers.1.input_layernorm.weight";
  edit_json(copy.own("model.safetensors.index.json"),
            [&](Json& index) { index["weight_map"][name] = TinyCopy::shard_name(9); });
  const auto part = open_leading(copy.path(), kAll);
  ASSERT_TRUE(part.ok()) << part.error().what;
  EXPECT_EQ(part.value().config().n_layers, 1);
}

}  // namespace
}  // namespace sluice
