// A pack read through the spine store: its bytes in every kind of slot, and damaged packs.
#include "format/pack_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"
#include "io/temp_directory.h"
#include "store/spine_store.h"
#include "store/tiny_model.h"
#include "store/tiny_pack.h"

namespace sluice {
namespace {

MemoryPlan plan_of(const Checkpoint& checkpoint, const PackFile& pack, bool pinned) {
  MemoryPlan plan;
  for (LayerId layer{0}; layer.v < checkpoint.config().n_layers; ++layer.v) {
    plan.layer_pinned.push_back(pinned);
    if (pinned) continue;
    plan.ring_slots = 1;
    plan.ring_slot_bytes =
        std::max(plan.ring_slot_bytes, spine_slot_bytes(checkpoint, layer, &pack));
  }
  return plan;
}

class PackFileTest : public testing::Test {
 protected:
  PackFileTest()
      : checkpoint_(open_checkpoint(tiny_k3(), Direct::kAuto)),
        path_(make_pack(checkpoint_, directory_.path())),
        whole_(read_file(path_)) {}

  // What opening says of a pack of these bytes.
  std::string refusal(const std::string& bytes) const {
    write_file(path_, bytes);
    const auto pack = try_open_pack(checkpoint_, path_);
    if (pack.ok()) return "opened";
    EXPECT_NE(pack.error().what.find(path_.string()), std::string::npos) << pack.error().what;
    return pack.error().what;
  }

  void put(uint64_t place, char value) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(place));
    file.put(value);
  }

  Checkpoint checkpoint_;
  TempDirectory directory_;
  std::filesystem::path path_;
  std::string whole_;
};

TEST_F(PackFileTest, PinnedAndStreamedLayersAreThePacksBytes) {
  const auto pack = open_pack(checkpoint_, path_);
  for (const bool pinned : {true, false}) {
    const auto store =
        SpineStore::open(checkpoint_, plan_of(checkpoint_, *pack, pinned), pack.get());
    ASSERT_TRUE(store.ok()) << store.error().what;
    for (LayerId layer{0}; layer.v < checkpoint_.config().n_layers; ++layer.v) {
      const auto lease = store.value()->acquire(layer);
      ASSERT_TRUE(lease.ok());
      for (const PackTensor& tensor : pack->layout().layer(layer).tensors) {
        if (tensor.kind != TensorKind::kMatrix) continue;
        const StoredMatrix matrix = lease.value().matrix(tensor.role);
        EXPECT_EQ(matrix.dtype, tensor.role == Role::kRouter ? Dtype::kBf16 : Dtype::kI8);
        EXPECT_EQ(matrix.rows, tensor.rows);
        EXPECT_EQ(matrix.cols, tensor.cols);
        EXPECT_EQ(std::memcmp(matrix.data, whole_.data() + tensor.offset, tensor.bytes), 0);
        EXPECT_EQ(matrix.scales,
                  tensor.dtype == Dtype::kI8 ? matrix.data + tensor.rows * tensor.cols : nullptr);
      }
    }
  }
}

TEST_F(PackFileTest, APassStreamsTheMatricesInOneReadALayer) {
  const auto pack = open_pack(checkpoint_, path_);
  for (LayerId layer{0}; layer.v < checkpoint_.config().n_layers; ++layer.v) {
    const uint64_t int8 = spine_slot_bytes(checkpoint_, layer, pack.get());
    EXPECT_LT(int8, spine_slot_bytes(checkpoint_, layer) * 6 / 10);
    EXPECT_EQ(int8, slot_bytes(pack->layout().layer(layer).matrix_bytes));
  }
}

TEST_F(PackFileTest, ATruncatedPackIsRefusedWithTheCure) {
  for (const uint64_t kept :
       {uint64_t{0}, uint64_t{100}, kPackHeaderBytes, whole_.size() / 2, whole_.size() - 1}) {
    EXPECT_NE(refusal(whole_.substr(0, kept)).find("run sluice convert"), std::string::npos)
        << kept;
  }
  EXPECT_NE(refusal(whole_ + "x").find("run sluice convert"), std::string::npos);
  EXPECT_EQ(refusal(whole_), "opened");
}

TEST_F(PackFileTest, AnyByteOfHeaderTableAndFooterThatChangedIsRefusedWithTheCure) {
  const PackLayout layout = layout_of(checkpoint_);
  std::vector<uint64_t> places = {0, 8, 12, 16, 40, 80, 96, 104, 112, 200, 4000, 4090};
  for (uint64_t place = layout.table_offset; place < layout.file_bytes; place += 37) {
    places.push_back(place);
  }
  for (uint64_t back = 1; back <= kPackFooterBytes; ++back) {
    places.push_back(layout.file_bytes - back);
  }
  for (const uint64_t place : places) {
    put(place, static_cast<char>(whole_[place] ^ 2));
    const auto pack = PackFile::open(path_, layout, Direct::kAuto);
    put(place, whole_[place]);
    ASSERT_FALSE(pack.ok()) << place;
    EXPECT_NE(pack.error().what.find("run sluice convert"), std::string::npos) << place;
  }
}

TEST_F(PackFileTest, APackOfAnotherCheckpointIsRefusedWithBothFingerprints) {
  PackLayout foreign = layout_of(checkpoint_);
  const std::string own = foreign.fingerprint.substr(0, 16);
  foreign.fingerprint.assign(64, 'a');
  const TempDirectory other;
  ThreadPool pool(1);
  ASSERT_TRUE(write_pack(checkpoint_, foreign, {.directory = other.path(), .pool = &pool}).ok());
  const std::string what = refusal(read_file(other.path() / kPackName));
  EXPECT_NE(what.find("aaaaaaaaaaaaaaaa"), std::string::npos) << what;
  EXPECT_NE(what.find(own), std::string::npos) << what;
  EXPECT_NE(what.find("run sluice convert"), std::string::npos) << what;
}

TEST_F(PackFileTest, AnotherVersionIsRefusedByItsNumber) {
  std::string bytes = whole_;
  bytes[8] = 7;
  EXPECT_NE(refusal(bytes).find("version 7"), std::string::npos);
}

TEST_F(PackFileTest, ALayerWithAChangedByteIsRefusedWhenItIsFirstRead) {
  const PackTensor tensor = *layout_of(checkpoint_).layer(LayerId{3}).find(Role::kKvBProj);
  for (const uint64_t place : {tensor.offset, tensor.offset + tensor.bytes - 1}) {
    std::string bytes = whole_;
    bytes[place] ^= 1;
    write_file(path_, bytes);
    const auto pack = open_pack(checkpoint_, path_);
    EXPECT_FALSE(
        SpineStore::open(checkpoint_, plan_of(checkpoint_, *pack, /*pinned=*/true), pack.get())
            .ok());
    const auto store =
        SpineStore::open(checkpoint_, plan_of(checkpoint_, *pack, /*pinned=*/false), pack.get());
    ASSERT_TRUE(store.ok());
    EXPECT_TRUE(store.value()->acquire(LayerId{2}).ok());
    const auto lease = store.value()->acquire(LayerId{3});
    ASSERT_FALSE(lease.ok());
    EXPECT_EQ(lease.error().code, Code::kCorrupt);
    for (const char* named : {"layers.3.self_attn.kv_b_proj", kPackName.data(), "sluice convert"}) {
      EXPECT_NE(lease.error().what.find(named), std::string::npos) << lease.error().what;
    }
    EXPECT_TRUE(store.value()->acquire(LayerId{4}).ok());
  }
}

}  // namespace
}  // namespace sluice
