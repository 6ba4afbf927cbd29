// The bundled checkpoint as it is bound.
#include "format/checkpoint.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

Checkpoint open_tiny() {
  Result<Checkpoint> checkpoint = Checkpoint::open(tiny_k3(), Direct::kAuto);
  CHECK(checkpoint.ok());
  return std::move(checkpoint).value();
}

// Offset of `name` in a shard, read by the test's own reader.
uint64_t expected_offset(const Checkpoint& checkpoint, int32_t file, const std::string& name) {
  const std::string bytes = read_file(checkpoint.file(file).path());
  const RawSafetensors raw = read_raw_safetensors(checkpoint.file(file).path());
  return bytes.size() - raw.payload.size() + raw.header[name]["data_offsets"][0].get<uint64_t>();
}

TEST(Checkpoint, EveryTensorOfTheBundledModelIsBound) {
  const Checkpoint checkpoint = open_tiny();
  EXPECT_EQ(checkpoint.files().size(), 10u);
  EXPECT_EQ(checkpoint.n_tensors(), 2538);
  EXPECT_EQ(checkpoint.n_unclaimed(), 0);
  EXPECT_EQ(checkpoint.spine_bytes() + checkpoint.expert_bytes(), 19'178'944u);
  EXPECT_EQ(checkpoint.n_experts_total(), 8 * 48);
  EXPECT_EQ(checkpoint.expert_bytes(), 8u * 48u * 19'584u);
  for (int32_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
    for (const TensorSpec& spec : layer_tensors(checkpoint.config(), LayerId{layer})) {
      EXPECT_TRUE(checkpoint.tensor(LayerId{layer}, spec.role).present()) << spec.name;
    }
  }
}

TEST(Checkpoint, RefsGiveShapeDtypeAndPlace) {
  const Checkpoint checkpoint = open_tiny();
  const TensorRef& embed = checkpoint.global(Role::kEmbedTokens);
  EXPECT_EQ(embed.rows, 4096);
  EXPECT_EQ(embed.cols, 256);
  EXPECT_EQ(embed.dtype, Dtype::kBf16);
  EXPECT_EQ(embed.kind, TensorKind::kMatrix);
  EXPECT_EQ(embed.bytes, 2'097'152u);
  EXPECT_EQ(embed.file, 9);
  EXPECT_EQ(embed.offset,
            expected_offset(checkpoint, 9, "language_model.model.embed_tokens.weight"));
  const TensorRef& conv = checkpoint.tensor(LayerId{5}, Role::kKConv);
  EXPECT_EQ(conv.rows, 128);
  EXPECT_EQ(conv.cols, 4);
  EXPECT_EQ(conv.dtype, Dtype::kF32);
  EXPECT_EQ(conv.kind, TensorKind::kVector);
  EXPECT_EQ(conv.offset,
            expected_offset(checkpoint, conv.file,
                            "language_model.model.layers.5.self_attn.k_conv1d.weight"));
  const TensorRef& norm = checkpoint.tensor(LayerId{3}, Role::kKvALayernorm);
  EXPECT_EQ(norm.rows, 1);
  EXPECT_EQ(norm.cols, 64);
  EXPECT_FALSE(checkpoint.tensor(LayerId{3}, Role::kALog).present());
  EXPECT_FALSE(checkpoint.tensor(LayerId{0}, Role::kRouter).present());
}

TEST(Checkpoint, ALogEndsAtTheHeads) {
  const Checkpoint checkpoint = open_tiny();
  const TensorRef& a_log = checkpoint.tensor(LayerId{0}, Role::kALog);  // stored [32] for 4 heads
  EXPECT_EQ(a_log.rows, 1);
  EXPECT_EQ(a_log.cols, 4);
  EXPECT_EQ(a_log.bytes, 16u);
}

TEST(Checkpoint, ExpertsAreContiguousRecords) {
  const Checkpoint checkpoint = open_tiny();
  const ExpertLayout& layout = checkpoint.expert_layout();
  EXPECT_EQ(layout.format, ExpertFormat::kMxfp4);
  EXPECT_EQ(layout.record_bytes, 19'584u);
  EXPECT_EQ(layout.piece_offset, (std::array<uint64_t, 6>{0, 6144, 6528, 12672, 13056, 19200}));
  EXPECT_EQ(layout.piece_bytes, (std::array<uint64_t, 6>{6144, 384, 6144, 384, 6144, 384}));
  for (const int32_t expert : {0, 1, 17, 47}) {
    const ExpertRef ref = checkpoint.expert({LayerId{4}, ExpertId{expert}});
    EXPECT_EQ(ref.offset,
              expected_offset(checkpoint, ref.file,
                              "language_model.model.layers.4.block_sparse_moe.experts." +
                                  std::to_string(expert) + ".w1.weight_packed"));
  }
}

TEST(Checkpoint, ExpertsMayLieInAnyOrder) {
  const TinyCopy copy;
  // Experts 3 and 5 of layer 1 swap places.
  edit_safetensors(copy.own_shard(2), [](RawSafetensors& raw) {
    const std::string prefix = "language_model.model.layers.1.block_sparse_moe.experts.";
    for (const char* piece : {"w1.weight_packed", "w1.weight_scale", "w2.weight_packed",
                              "w2.weight_scale", "w3.weight_packed", "w3.weight_scale"}) {
      std::swap(raw.header[prefix + "3." + piece]["data_offsets"],
                raw.header[prefix + "5." + piece]["data_offsets"]);
    }
  });
  const Checkpoint plain = open_tiny();
  const Result<Checkpoint> swapped = copy.open();
  ASSERT_TRUE(swapped.ok()) << swapped.error().what;
  // The edited header may have another length: compare distances.
  const auto place = [](const Checkpoint& c, int32_t expert) {
    return c.expert({LayerId{1}, ExpertId{expert}}).offset -
           c.expert({LayerId{1}, ExpertId{0}}).offset;
  };
  EXPECT_EQ(place(swapped.value(), 3), place(plain, 5));
  EXPECT_EQ(place(swapped.value(), 5), place(plain, 3));
}

TEST(Checkpoint, OneFileWithoutAnIndexIsEnough) {
  const TempDirectory directory;
  std::vector<TestTensor> tensors;
  for (int shard = 1; shard <= 10; ++shard) {
    const RawSafetensors raw = read_raw_safetensors(tiny_k3() / TinyCopy::shard_name(shard));
    for (const auto& [name, entry] : raw.header.items()) {
      if (name == "__metadata__") continue;
      const auto begin = entry["data_offsets"][0].get<size_t>();
      const auto end = entry["data_offsets"][1].get<size_t>();
      tensors.push_back({name, entry["dtype"].get<std::string>(),
                         entry["shape"].get<std::vector<int64_t>>(),
                         raw.payload.substr(begin, end - begin)});
    }
  }
  write_safetensors(directory.path() / "model.safetensors", tensors);
  std::filesystem::copy_file(tiny_k3() / "config.json", directory.path() / "config.json");
  const Result<Checkpoint> checkpoint = Checkpoint::open(directory.path(), Direct::kOff);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().what;
  EXPECT_EQ(checkpoint.value().files().size(), 1u);
  EXPECT_EQ(checkpoint.value().spine_bytes(), open_tiny().spine_bytes());
  EXPECT_EQ(checkpoint.value().config().eos_token_id, 3842);
}

TEST(Checkpoint, TensorsBesideTheDecoderAreLeftAloneAndNamed) {
  const TinyCopy copy;
  edit_json(copy.own("model.safetensors.index.json"), [](Json& index) {
    for (int i = 0; i < 10; ++i) {
      index["weight_map"]["vision_tower.blocks." + std::to_string(i) + ".w"] = "vision.safetensors";
    }
    index["weight_map"]["language_model.model.layers.9.mtp.weight"] = "vision.safetensors";
  });
  std::vector<TestTensor> vision;
  for (int i = 0; i < 10; ++i) {
    vision.push_back({"vision_tower.blocks." + std::to_string(i) + ".w", "BF16", {2, 2}});
  }
  vision.push_back({"language_model.model.layers.9.mtp.weight", "BF16", {1}});
  write_safetensors(copy.path() / "vision.safetensors", vision);
  const Result<Checkpoint> checkpoint = copy.open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().what;
  EXPECT_EQ(checkpoint.value().n_unclaimed(), 11);
  EXPECT_EQ(checkpoint.value().unclaimed().size(), 8u);
  EXPECT_EQ(checkpoint.value().unclaimed().front(), "vision_tower.blocks.0.w");
  EXPECT_EQ(checkpoint.value().spine_bytes(), open_tiny().spine_bytes());
}

TEST(Checkpoint, TiedEmbeddingsServeAsTheHead) {
  const TinyCopy copy;
  edit_json(copy.own("config.json"), [](Json& config) { config["tie_word_embeddings"] = true; });
  edit_json(copy.own("model.safetensors.index.json"),
            [](Json& index) { index["weight_map"].erase("language_model.lm_head.weight"); });
  edit_safetensors(copy.own_shard(10), [](RawSafetensors& raw) {
    raw.header.erase("language_model.lm_head.weight");
    constexpr size_t kHeadBytes = 4096 * 256 * 2;  // the first tensor of the shard
    for (const auto& [name, entry] : raw.header.items()) {
      if (name == "__metadata__") continue;
      for (Json& offset : raw.header[name]["data_offsets"]) {
        offset = offset.get<size_t>() - kHeadBytes;
      }
    }
    raw.payload.erase(0, kHeadBytes);
  });
  const Result<Checkpoint> checkpoint = copy.open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().what;
  EXPECT_EQ(checkpoint.value().global(Role::kLmHead).offset,
            checkpoint.value().global(Role::kEmbedTokens).offset);
  EXPECT_EQ(checkpoint.value().spine_bytes(), open_tiny().spine_bytes() - 4096 * 256 * 2);
}

TEST(CheckpointDeathTest, AnExpertOfADenseLayerIsABug) {
  const Checkpoint checkpoint = open_tiny();
  EXPECT_DEATH(static_cast<void>(checkpoint.expert({LayerId{0}, ExpertId{0}})), "check failed");
  EXPECT_DEATH(static_cast<void>(checkpoint.expert({LayerId{1}, ExpertId{48}})), "check failed");
}

}  // namespace
}  // namespace sluice
