// The int8 pack against docs/FORMAT.md written out again: layout, bytes, interrupted and damaged
// packs, and what the writer refuses.
#include "store/pack_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/xxh3.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"
#include "io/part_file.h"
#include "io/temp_directory.h"
#include "store/tiny_model.h"
#include "store/tiny_pack.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

template <class T>
T at(const std::string& bytes, size_t offset) {
  T value;
  EXPECT_LE(offset + sizeof(T), bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

uint64_t hash_of(std::string_view bytes) { return xxh3_64(std::as_bytes(std::span(bytes))); }

struct Entry {
  int dtype;  // 1 BF16, 2 F32, 3 I8
  std::vector<int64_t> shape;
  uint64_t offset, bytes, checksum;
};

// The table of a pack, read as docs/FORMAT.md says.
std::map<std::string, Entry> read_table(const std::string& pack) {
  std::map<std::string, Entry> entries;
  size_t place = at<uint64_t>(pack, 96);
  const auto count = at<uint64_t>(pack, place);
  place += 8;
  for (uint64_t i = 0; i < count; ++i) {
    const auto name_bytes = at<uint16_t>(pack, place);
    Entry entry{.dtype = at<uint16_t>(pack, place + 2),
                .shape = {},
                .offset = 0,
                .bytes = 0,
                .checksum = 0};
    const auto rank = at<uint32_t>(pack, place + 4);
    place += 8;
    for (uint32_t d = 0; d < rank; ++d, place += 8) entry.shape.push_back(at<int64_t>(pack, place));
    entry.offset = at<uint64_t>(pack, place);
    entry.bytes = at<uint64_t>(pack, place + 8);
    entry.checksum = at<uint64_t>(pack, place + 16);
    place += 24;
    EXPECT_TRUE(entries.emplace(pack.substr(place, name_bytes), entry).second);
    place += name_bytes;
  }
  EXPECT_EQ(place - at<uint64_t>(pack, 96), at<uint64_t>(pack, 104));
  EXPECT_EQ(place + 32, pack.size());
  return entries;
}

// The policy's bytes of a bf16 matrix, worked out in another way than the library's.
std::string int8_bytes(const std::vector<std::byte>& stored, int64_t rows, int64_t cols) {
  std::string codes, scales;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<float> row(static_cast<size_t>(cols));
    for (size_t c = 0; c < row.size(); ++c) {
      uint16_t bits;
      std::memcpy(&bits, stored.data() + 2 * (static_cast<size_t>(r * cols) + c), 2);
      row[c] = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
    float amax = 0;
    for (const float w : row) amax = std::fmax(amax, std::fabs(w));
    const float scale = amax == 0 ? 1.0f : amax / 127.0f;
    for (const float w : row) {
      codes += static_cast<char>(std::clamp<long>(std::lrint(w / scale), -127, 127));
    }
    scales.append(reinterpret_cast<const char*>(&scale), sizeof(scale));
  }
  return codes + scales;
}

class PackWriterTest : public testing::Test {
 protected:
  PackWriterTest() : checkpoint_(open_checkpoint(tiny_k3(), Direct::kAuto)) {}
  const fs::path& directory() const { return directory_.path(); }
  fs::path path() const { return directory() / kPackName; }
  fs::path part_path() const { return path().string() + ".part"; }
  std::string whole_pack() { return read_file(make_pack(checkpoint_, directory())); }

  Checkpoint checkpoint_;
  TempDirectory directory_;
};

TEST_F(PackWriterTest, EveryTensorIsThePolicyOfItsStoredBytes) {
  const std::string pack = whole_pack();
  auto entries = read_table(pack);
  int64_t n_int8 = 0;
  const auto expect_tensor = [&](const TensorSpec& spec, const TensorRef& ref) {
    SCOPED_TRACE(spec.name);
    ASSERT_TRUE(entries.contains(spec.name));
    const Entry entry = entries.extract(spec.name).mapped();
    const auto stored = file_bytes(checkpoint_.file(ref.file), ref.offset, ref.bytes);
    const bool is_int8 = spec.shape.size() == 2 && !spec.name.ends_with("res_proj.weight") &&
                         !spec.name.ends_with("block_sparse_moe.gate.weight");
    n_int8 += is_int8 ? 1 : 0;
    const std::string want =
        is_int8 ? int8_bytes(stored, ref.rows, ref.cols)
                : std::string(reinterpret_cast<const char*>(stored.data()), stored.size());
    EXPECT_EQ(entry.dtype, is_int8 ? 3 : ref.dtype == Dtype::kF32 ? 2 : 1);
    EXPECT_EQ(entry.shape, spec.shape);
    EXPECT_EQ(entry.offset % 64, 0u);
    EXPECT_EQ(entry.bytes, want.size());
    EXPECT_TRUE(pack.substr(entry.offset, entry.bytes) == want);
    EXPECT_EQ(entry.checksum, hash_of(want));
  };
  const Config& config = checkpoint_.config();
  for (LayerId layer{0}; layer.v < config.n_layers; ++layer.v) {
    for (const TensorSpec& spec : layer_tensors(config, layer)) {
      expect_tensor(spec, checkpoint_.tensor(layer, spec.role));
    }
  }
  for (const TensorSpec& spec : global_tensors(config)) {
    if (spec.role == Role::kLmHead) expect_tensor(spec, checkpoint_.global(spec.role));
  }
  EXPECT_TRUE(entries.empty()) << entries.begin()->first;
  EXPECT_EQ(n_int8, 110);  // goldens.json: int8_tensors
}

TEST_F(PackWriterTest, HeaderAndFooterSayWhatTheFormatPageSays) {
  const std::string pack = whole_pack();
  EXPECT_EQ(pack.substr(0, 8), "SLUICEPK");
  EXPECT_EQ(at<uint32_t>(pack, 8), 1u);
  EXPECT_EQ(at<uint32_t>(pack, 12), 10u);  // nine layers and the head
  EXPECT_EQ(pack.substr(16, 64), fingerprint(checkpoint_).value());
  EXPECT_EQ(pack.substr(80, 16), std::string("k3i8") + std::string(12, '\0'));
  EXPECT_EQ(at<uint64_t>(pack, 96) % 4096, 0u);
  EXPECT_EQ(at<uint64_t>(pack, 112), pack.size());
  EXPECT_EQ(at<uint64_t>(pack, 4088), hash_of(pack.substr(0, 4088)));
  const std::string footer = pack.substr(pack.size() - 32);
  EXPECT_EQ(at<uint64_t>(footer, 0),
            hash_of(pack.substr(at<uint64_t>(pack, 96), at<uint64_t>(pack, 104))));
  EXPECT_EQ(at<uint64_t>(footer, 8), pack.size());
  EXPECT_EQ(footer.substr(16), "sluice pack end\n");
}

TEST_F(PackWriterTest, ALayerIsOneStretchFromAPageOnWithItsMatricesFirst) {
  const PackLayout layout = layout_of(checkpoint_);
  ASSERT_EQ(layout.groups.size(), 10u);
  uint64_t end = kPackHeaderBytes;
  for (const PackGroup& group : layout.groups) {
    EXPECT_EQ(group.offset % 4096, 0u);
    EXPECT_LT(group.offset - end, 4096u);
    end = group.offset;
    bool vectors = false;
    for (const PackTensor& tensor : group.tensors) {
      EXPECT_LT(tensor.offset - end, 64u) << tensor.name;
      end = tensor.offset + tensor.bytes;
      vectors = vectors || tensor.kind == TensorKind::kVector;
      EXPECT_EQ(tensor.kind == TensorKind::kVector, vectors) << tensor.name;
      if (!vectors) {
        EXPECT_LE(end, group.offset + group.matrix_bytes);
      }
    }
    EXPECT_EQ(end, group.offset + group.bytes);
  }
}

TEST_F(PackWriterTest, TheSizePredictedIsTheSizeWritten) {
  EXPECT_EQ(layout_of(checkpoint_).file_bytes, whole_pack().size());
}

TEST_F(PackWriterTest, AWholePackIsLeftAlone) {
  const std::string before = whole_pack();
  const auto time = fs::last_write_time(path());
  const auto summary = try_pack(checkpoint_, {.directory = directory()});
  ASSERT_TRUE(summary.ok());
  EXPECT_TRUE(summary.value().was_complete);
  EXPECT_EQ(summary.value().groups_written, 0);
  EXPECT_EQ(fs::last_write_time(path()), time);
  EXPECT_TRUE(read_file(path()) == before);
}

// Ends a run after `steps` reports of progress; whether it ran to its end before.
bool run_some(const Checkpoint& checkpoint, const fs::path& directory, int steps) {
  std::atomic<bool> stop = false;
  const auto summary = try_pack(
      checkpoint, {.directory = directory, .stop = &stop, .on_progress = [&](const PackProgress&) {
                     if (--steps == 0) stop = true;
                   }});
  if (!summary.ok()) {
    EXPECT_EQ(summary.error().code, Code::kCancelled) << summary.error().what;
  }
  return summary.ok();
}

TEST_F(PackWriterTest, AnInterruptedRunIsGoneOnWithAndTheBytesAreTheSame) {
  const std::string whole = whole_pack();
  for (const int steps : {1, 2, 25, 60, 100, 150, 200, 230, 250}) {
    const TempDirectory other;
    ASSERT_FALSE(run_some(checkpoint_, other.path(), steps)) << steps;
    EXPECT_FALSE(fs::exists(other.path() / kPackName));
    const auto summary = try_pack(checkpoint_, {.directory = other.path()});
    ASSERT_TRUE(summary.ok()) << summary.error().what;
    EXPECT_EQ(summary.value().groups_kept + summary.value().groups_written, 10);
    if (steps >= 60) {
      EXPECT_GT(summary.value().groups_kept, 0) << steps;
    }
    EXPECT_TRUE(read_file(other.path() / kPackName) == whole) << steps;
    EXPECT_FALSE(fs::exists(other.path() / (std::string(kPackName) + ".part")));
  }
}

TEST_F(PackWriterTest, ManyInterruptionsEndInTheSameBytes) {
  const std::string whole = whole_pack();
  const TempDirectory other;
  int runs = 1;
  // Each run gets further by a layer or more: reports of kept layers count too.
  for (int steps = 40; !run_some(checkpoint_, other.path(), steps); steps += 40) ++runs;
  EXPECT_GT(runs, 3);
  EXPECT_TRUE(read_file(other.path() / kPackName) == whole);
}

TEST_F(PackWriterTest, ALayerOfAnInterruptedRunThatLostABitIsWrittenAgain) {
  const std::string whole = whole_pack();
  const TempDirectory other;
  const fs::path part = other.path() / (std::string(kPackName) + ".part");
  ASSERT_FALSE(run_some(checkpoint_, other.path(), 200));
  std::string bytes = read_file(part);
  bytes[layout_of(checkpoint_).groups[1].tensors[2].offset + 5] ^= 1;
  write_file(part, bytes);
  const auto summary = try_pack(checkpoint_, {.directory = other.path()});
  ASSERT_TRUE(summary.ok());
  EXPECT_GT(summary.value().groups_kept, 2);
  EXPECT_TRUE(read_file(other.path() / kPackName) == whole);
}

TEST_F(PackWriterTest, WhatAnotherCheckpointLeftIsThrownAway) {
  const std::string whole = whole_pack();
  const TempDirectory other;
  PackLayout foreign = layout_of(checkpoint_);
  foreign.fingerprint[0] = foreign.fingerprint[0] == '0' ? '1' : '0';
  ThreadPool pool(1);
  ASSERT_TRUE(write_pack(checkpoint_, foreign, {.directory = other.path(), .pool = &pool}).ok());
  std::string note;
  const auto summary = try_pack(
      checkpoint_,
      {.directory = other.path(), .on_note = [&note](const std::string& said) { note += said; }});
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary.value().groups_kept, 0);
  EXPECT_NE(note.find("another checkpoint"), std::string::npos) << note;
  EXPECT_TRUE(read_file(other.path() / kPackName) == whole);
}

TEST_F(PackWriterTest, ADamagedPackIsMendedAndItsWholeLayersAreKept) {
  const std::string whole = whole_pack();
  const PackLayout layout = layout_of(checkpoint_);
  const PackTensor& tensor = layout.groups[4].tensors[1];
  for (const uint64_t place : {tensor.offset + tensor.bytes - 1, layout.table_offset + 60,
                               layout.file_bytes - 1, uint64_t{4090}}) {
    std::string bytes = whole;
    bytes[place] ^= 64;
    write_file(path(), bytes);
    std::string note;
    const auto summary = try_pack(
        checkpoint_,
        {.directory = directory(), .on_note = [&note](const std::string& said) { note += said; }});
    ASSERT_TRUE(summary.ok()) << summary.error().what;
    EXPECT_FALSE(summary.value().was_complete);
    if (place >= kPackHeaderBytes) {
      EXPECT_GE(summary.value().groups_kept, 9);
    }
    EXPECT_NE(note.find("written again"), std::string::npos) << note;
    EXPECT_TRUE(read_file(path()) == whole);
  }
}

TEST_F(PackWriterTest, ASecondWriterSaysSoAndWritesNothing) {
  const fs::path lock_path = path().string() + ".lock";
  const auto lock = FileLock::try_lock(lock_path);
  ASSERT_TRUE(lock.ok() && lock.value());
  const auto summary = try_pack(checkpoint_, {.directory = directory()});
  ASSERT_FALSE(summary.ok());
  EXPECT_NE(summary.error().what.find("another sluice convert"), std::string::npos);
  EXPECT_FALSE(fs::exists(part_path()));
}

TEST_F(PackWriterTest, AWeightThatIsNotFiniteIsAnErrorThatNamesTensorAndRow) {
  const TinyCopy copy;
  const fs::path shard = copy.own_shard(3);
  const TensorRef& ref = checkpoint_.tensor(LayerId{2}, Role::kOProj);
  std::string bytes = read_file(shard);
  bytes[ref.offset + static_cast<uint64_t>(2 * (ref.cols * 17 + 3))] = '\x80';
  bytes[ref.offset + static_cast<uint64_t>(2 * (ref.cols * 17 + 3)) + 1] = '\x7f';
  write_file(shard, bytes);
  const Checkpoint damaged = open_checkpoint(copy.path(), Direct::kAuto);
  const auto summary = try_pack(damaged, {.directory = directory()});
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().code, Code::kCorrupt);
  for (const char* named : {"layers.2.self_attn.o_proj", "row 17", "00003-of"}) {
    EXPECT_NE(summary.error().what.find(named), std::string::npos) << summary.error().what;
  }
  EXPECT_FALSE(fs::exists(path()));
}

}  // namespace
}  // namespace sluice
