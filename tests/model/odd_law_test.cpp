// The law on the checkpoints of tests/odd: shapes and configurations that tiny-k3 does not have.
#include <initializer_list>

#include "io/temp_directory.h"
#include "model/law.h"
#include "store/tiny_pack.h"

namespace sluice::testing {
namespace {

class OddLaw : public ::testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path directory() const {
    return std::filesystem::path(SLUICE_SOURCE_DIR "/tests/odd") / GetParam();
  }
  TinyModel tiny(const std::string& isa = "auto", int threads = 2) const {
    return TinyModel({.model = directory(), .isa = isa, .threads = threads, .context = 2048});
  }
  // Every odd vocabulary has at least 61 tokens.
  static Tokens odd_tokens(int64_t n, uint32_t seed = 1) { return some_tokens(n, seed, 61); }
};

TEST_P(OddLaw, APromptCutNearTilesAndBlocksGivesTheSameBits) {
  TinyModel model = tiny();
  expect_cuts_equal(model, odd_tokens(132), {1, 2, 3, 31, 63, 64, 65, 100, 127, 128, 129, 131});
}

TEST_P(OddLaw, TokensOneByOneGiveTheBitsOfOnePass) {
  TinyModel model = tiny();
  expect_single_rows_equal(model, odd_tokens(70));
}

TEST_P(OddLaw, ThreadsAndTablesGiveTheSameBits) {
  TinyModel reference = tiny("scalar", 1);
  const Tokens tokens = odd_tokens(68);
  const Logits want = all_logits(reference, tokens);
  for (const KernelTable* table : supported_tables()) {
    for (const int threads : {1, 5}) {
      TinyModel model = tiny(table->name, threads);
      EXPECT_TRUE(same_bits(want, all_logits(model, tokens)))
          << table->name << ", " << threads << " threads";
    }
  }
}

TEST_P(OddLaw, InterleavedSequencesEqualEachAlone) {
  TinyModel model = tiny();
  expect_interleaved_equal(model, {odd_tokens(80, 1), odd_tokens(33, 2), odd_tokens(67, 3)});
}

TEST_P(OddLaw, MemoryFromTheFloorToEverythingGivesTheSameBits) {
  expect_memory_equal({.model = directory(), .threads = 2, .context = 2048}, odd_tokens(40), 3);
}

TEST_P(OddLaw, RollbackLeavesNoTrace) {
  TinyModel model = tiny();
  for (const size_t kept : std::initializer_list<size_t>{0, 1, 4, 8, 9}) {
    expect_rollback_equal(model, odd_tokens(62), odd_tokens(9, 7), kept, odd_tokens(5, 9));
  }
}

TEST_P(OddLaw, TheInt8SpineKeepsIt) {
  const TempDirectory work;
  const Checkpoint checkpoint = must(Checkpoint::open(directory(), Direct::kAuto));
  const auto pack = open_pack(checkpoint, make_pack(checkpoint, work.path()));
  const Tokens tokens = odd_tokens(68);
  TinyModel reference({.model = directory(), .isa = "scalar", .context = 2048, .pack = pack.get()});
  const Logits want = all_logits(reference, tokens);
  for (const KernelTable* table : supported_tables()) {
    TinyModel model({.model = directory(),
                     .isa = table->name,
                     .threads = 3,
                     .context = 2048,
                     .pack = pack.get()});
    EXPECT_TRUE(same_bits(want, all_logits(model, tokens))) << table->name;
    expect_cuts_equal(model, tokens, {1, 65});
  }
  expect_memory_equal({.model = directory(), .threads = 2, .context = 2048, .pack = pack.get()},
                      tokens, 1);
}

INSTANTIATE_TEST_SUITE_P(, OddLaw,
                         ::testing::Values("kimi-linear", "wide-heads", "small-latents",
                                           "far-scales", "many-experts", "steep-situ",
                                           "grouped-softmax", "dense-mla", "dense-kda"),
                         [](const auto& info) {
                           std::string name = info.param;  // a test's name holds no '-'
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice::testing
