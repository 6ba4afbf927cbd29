// The law on tiny-k3: logits are a function of the tokens alone, bit for bit.
#include <atomic>

#include "model/law.h"

namespace sluice::testing {
namespace {

TEST(Law, APromptCutAtEveryPositionGivesTheSameBits) {
  TinyModel tiny({.threads = 2});
  expect_cuts_equal(tiny, some_tokens(80), all_cuts(80));
}

TEST(Law, ALongerPromptCutNearTilesAndBlocksGivesTheSameBits) {
  TinyModel tiny({.threads = 2});  // longer than two tiles and two attention blocks
  expect_cuts_equal(tiny, some_tokens(150), {1, 63, 64, 65, 100, 127, 128, 129, 149});
}

TEST(Law, AShortPromptCutAtEveryPositionGivesTheSameBitsOnScalar) {
  TinyModel tiny({.isa = "scalar", .threads = 2});
  expect_cuts_equal(tiny, some_tokens(5), all_cuts(5));
}

TEST(Law, TokensOneByOneGiveTheBitsOfOnePass) {
  TinyModel tiny;
  expect_single_rows_equal(tiny, some_tokens(300));  // crosses a page
}

TEST(Law, ThreadCountsGiveTheSameBits) {
  const Tokens tokens = some_tokens(100);
  TinyModel one({.threads = 1});
  const Logits want = all_logits(one, tokens);
  for (const int threads : {2, 3, 5}) {
    TinyModel tiny({.threads = threads});
    EXPECT_TRUE(same_bits(want, all_logits(tiny, tokens))) << threads << " threads";
  }
}

TEST(Law, EveryTableGivesTheBitsOfScalar) {
  const Tokens tokens = some_tokens(70);
  TinyModel scalar({.isa = "scalar", .threads = 2});
  const Logits want = all_logits(scalar, tokens);
  for (const KernelTable* table : supported_tables()) {
    TinyModel tiny({.isa = table->name, .threads = 2});
    EXPECT_TRUE(same_bits(want, all_logits(tiny, tokens))) << table->name;
  }
}

TEST(Law, ThreeInterleavedSequencesEqualEachAlone) {
  TinyModel tiny({.threads = 2});
  expect_interleaved_equal(tiny, {some_tokens(90, 1), some_tokens(40, 2), some_tokens(75, 3)});
}

TEST(Law, MemoryFromTheFloorToEverythingGivesTheSameBits) {
  expect_memory_equal({.threads = 2}, some_tokens(60), 6);
}

TEST(Law, RollbackOfOneToEightRowsLeavesNoTrace) {
  TinyModel tiny({.threads = 2});
  for (size_t kept = 1; kept <= 8; ++kept) {  // the tentative rows cross an attention block
    expect_rollback_equal(tiny, some_tokens(62), some_tokens(9, 7), kept, some_tokens(5, 9));
  }
}

TEST(Law, DroppingAllTentativeRowsLeavesNoTrace) {
  TinyModel tiny;
  const Tokens tokens = some_tokens(20);
  const Logits want = all_logits(tiny, tokens);
  auto state = tiny.new_state();
  tiny.keep(*state, sub(tokens, 0, 10), 0);
  tiny.attempt(*state, some_tokens(9, 5));
  state->rollback();
  const Logits got = tiny.keep(*state, sub(tokens, 10, 20), 10);
  EXPECT_TRUE(same_bits(got, Logits(want.begin() + 10 * tiny.vocab(), want.end())));
}

TEST(Law, ACancelledPassLeavesEverySequenceAsItWas) {
  TinyModel tiny;
  const Tokens tokens = some_tokens(30);
  const Logits want = all_logits(tiny, tokens);
  auto state = tiny.new_state();
  tiny.keep(*state, sub(tokens, 0, 12), 0);
  const std::atomic<bool> stop = true;
  const Status status = tiny.model().forward(
      {{{state.get(), some_tokens(40, 3), RowFate::kKeep, 0}}}, {}, &stop, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_EQ(state->length(), 12);
  const Logits got = tiny.keep(*state, sub(tokens, 12, 30), 18);
  EXPECT_TRUE(same_bits(got, Logits(want.begin() + 12 * tiny.vocab(), want.end())));
}

TEST(Law, TwoModelsInOneProcessDoNotTouchEachOther) {
  TinyModel a({.threads = 2});
  TinyModel b({.isa = "scalar", .threads = 1});
  const Tokens tokens = some_tokens(12);
  auto state_a = a.new_state();
  auto state_b = b.new_state();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Logits from_a = a.keep(*state_a, {tokens[i]}, 1);
    const Logits from_b = b.keep(*state_b, {tokens[i]}, 1);
    EXPECT_TRUE(same_bits(from_a, from_b)) << i;
  }
}

}  // namespace
}  // namespace sluice::testing
