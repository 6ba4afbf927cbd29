// The law for the int8 spine: other weights, the same promise. Also what the quantisation costs.
#include "io/temp_directory.h"
#include "model/tiny_model.h"
#include "store/tiny_pack.h"

namespace sluice::testing {
namespace {

class Int8Law : public ::testing::Test {
 protected:
  Int8Law()
      : checkpoint_(must(Checkpoint::open(tiny_k3(), Direct::kAuto))),
        pack_(open_pack(checkpoint_, make_pack(checkpoint_, directory_.path()))) {}

  // Logits of every row of `tokens_`, in passes as long as the plan allows.
  Logits logits(TinyOptions options) {
    options.pack = pack_.get();
    TinyModel tiny(options);
    floor_bytes_ = tiny.plan().floor_bytes;
    all_bytes_ = tiny.plan().total_bytes();
    auto state = tiny.new_state();
    Logits all;
    const auto chunk = static_cast<size_t>(tiny.model().rows_max());
    for (size_t begin = 0; begin < tokens_.size(); begin += chunk) {
      const size_t end = std::min(tokens_.size(), begin + chunk);
      const Logits some = tiny.keep(
          *state,
          {tokens_.begin() + static_cast<long>(begin), tokens_.begin() + static_cast<long>(end)},
          static_cast<int64_t>(end - begin));
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  TempDirectory directory_;
  Checkpoint checkpoint_;
  std::unique_ptr<PackFile> pack_;
  std::vector<TokenId> tokens_ = some_tokens(70);
  uint64_t floor_bytes_ = 0, all_bytes_ = 0;
};

TEST_F(Int8Law, TablesThreadsAndMemoryGiveTheSameBits) {
  const Logits want = logits({.isa = "scalar", .threads = 1});
  const uint64_t floor = floor_bytes_, all = all_bytes_;
  for (const KernelTable* table : supported_tables()) {
    for (const int threads : {1, 3}) {
      EXPECT_TRUE(same_bits(want, logits({.isa = table->name, .threads = threads})))
          << table->name << ", " << threads << " threads";
    }
  }
  ASSERT_LT(floor, all);
  for (const uint64_t ram_bytes : {floor, (floor + all) / 2, all}) {
    EXPECT_TRUE(same_bits(want, logits({.threads = 1, .ram_bytes = ram_bytes}))) << ram_bytes;
  }
}

TEST_F(Int8Law, TheSpineIsAnotherOneAndSmaller) {
  const Logits int8 = logits({});
  TinyModel bf16;
  auto state = bf16.new_state();
  const Logits other = bf16.keep(*state, tokens_, static_cast<int64_t>(tokens_.size()));
  EXPECT_FALSE(same_bits(int8, other));
  EXPECT_LT(floor_bytes_, bf16.plan().floor_bytes);
  EXPECT_LT(all_bytes_, bf16.plan().total_bytes());
}

}  // namespace
}  // namespace sluice::testing
