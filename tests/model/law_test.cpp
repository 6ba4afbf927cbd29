// The law on tiny-k3: logits are a function of the tokens alone, bit for bit.
#include <atomic>

#include "model/tiny_model.h"

namespace sluice::testing {
namespace {

using Tokens = std::vector<TokenId>;

Tokens sub(const Tokens& tokens, size_t begin, size_t end) {
  return {tokens.begin() + static_cast<long>(begin), tokens.begin() + static_cast<long>(end)};
}

Logits row(const Logits& logits, int64_t index, int64_t vocab) {
  return {logits.begin() + index * vocab, logits.begin() + (index + 1) * vocab};
}

// Logits of every row of `tokens`, computed in one pass.
Logits all_logits(TinyModel& tiny, const Tokens& tokens) {
  auto state = tiny.new_state();
  return tiny.keep(*state, tokens, static_cast<int64_t>(tokens.size()));
}

Logits concatenate(Logits a, const Logits& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The prompt in two passes, for every place to cut it.
void cut_everywhere(TinyModel& tiny, const Tokens& tokens) {
  const Logits whole = all_logits(tiny, tokens);
  for (size_t cut = 1; cut < tokens.size(); ++cut) {
    auto state = tiny.new_state();
    Logits parts = tiny.keep(*state, sub(tokens, 0, cut), static_cast<int64_t>(cut));
    parts = concatenate(std::move(parts), tiny.keep(*state, sub(tokens, cut, tokens.size()),
                                                    static_cast<int64_t>(tokens.size() - cut)));
    ASSERT_TRUE(same_bits(whole, parts)) << "cut at " << cut;
  }
}

TEST(Law, APromptCutAtEveryPositionGivesTheSameBits) {
  TinyModel tiny({.threads = 2});
  cut_everywhere(tiny, some_tokens(150));  // longer than two tiles and two attention blocks
}

TEST(Law, AShortPromptCutAtEveryPositionGivesTheSameBitsOnScalar) {
  TinyModel tiny({.isa = "scalar", .threads = 2});
  cut_everywhere(tiny, some_tokens(8));
}

TEST(Law, TokensOneByOneGiveTheBitsOfOnePass) {
  TinyModel tiny;
  const Tokens tokens = some_tokens(300);  // crosses a page
  const Logits whole = all_logits(tiny, tokens);
  auto state = tiny.new_state();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Logits one = tiny.attempt(*state, {tokens[i]});
    state->commit(1, tiny.model().compute());
    ASSERT_TRUE(same_bits(one, row(whole, static_cast<int64_t>(i), tiny.vocab()))) << i;
  }
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
  constexpr size_t kSequences = 3;
  std::array<Tokens, kSequences> tokens = {some_tokens(90, 1), some_tokens(40, 2),
                                           some_tokens(75, 3)};
  std::array<Logits, kSequences> alone, together;
  for (size_t s = 0; s < kSequences; ++s) alone[s] = all_logits(tiny, tokens[s]);

  std::array<std::unique_ptr<State>, kSequences> states;
  std::array<size_t, kSequences> done{};
  for (auto& state : states) state = tiny.new_state();
  for (size_t pass = 0;; ++pass) {
    // Uneven steps: prompts of changing length beside single rows, in changing order.
    Batch batch;
    std::vector<size_t> order;
    for (size_t i = 0; i < kSequences; ++i) {
      const size_t s = (i + pass) % kSequences;
      const size_t step = std::min(tokens[s].size() - done[s], (pass * 7 + s * 5) % 23 + 1);
      if (step == 0) continue;
      const bool tentative = step <= 9 && (pass + s) % 2 == 0;
      batch.sequences.push_back({states[s].get(), sub(tokens[s], done[s], done[s] + step),
                                 tentative ? RowFate::kTentative : RowFate::kKeep,
                                 static_cast<int64_t>(step)});
      order.push_back(s);
    }
    if (batch.sequences.empty()) break;
    const Logits logits = tiny.run(batch);
    int64_t at = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const SequenceRows& rows = batch.sequences[i];
      for (int64_t r = 0; r < rows.n_logits; ++r) {
        together[order[i]] =
            concatenate(std::move(together[order[i]]), row(logits, at++, tiny.vocab()));
      }
      if (rows.fate == RowFate::kTentative) rows.state->commit(rows.n_logits, tiny.model().compute());
      done[order[i]] += rows.tokens.size();
    }
  }
  for (size_t s = 0; s < kSequences; ++s) EXPECT_TRUE(same_bits(alone[s], together[s])) << s;
}

TEST(Law, MemoryFromTheFloorToEverythingGivesTheSameBits) {
  const Tokens tokens = some_tokens(60);
  TinyModel rich({.threads = 2});
  const Logits want = all_logits(rich, tokens);
  const uint64_t floor = rich.plan().floor_bytes;
  const uint64_t all = rich.plan().total_bytes();
  ASSERT_LT(floor, all);
  constexpr uint64_t kSteps = 6;
  for (uint64_t step = 0; step <= kSteps; ++step) {
    TinyModel tiny({.threads = 2, .ram_bytes = floor + (all - floor) * step / kSteps});
    auto state = tiny.new_state();
    Logits got;
    const auto chunk = static_cast<size_t>(std::min<int64_t>(tiny.model().rows_max(), 60));
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const size_t end = std::min(tokens.size(), begin + chunk);
      got = concatenate(std::move(got), tiny.keep(*state, sub(tokens, begin, end),
                                                  static_cast<int64_t>(end - begin)));
    }
    EXPECT_TRUE(same_bits(want, got)) << "step " << step;
  }
}

TEST(Law, RollbackOfOneToEightRowsLeavesNoTrace) {
  TinyModel tiny({.threads = 2});
  const Tokens prompt = some_tokens(62);  // the tentative rows cross an attention block
  const Tokens next = some_tokens(9, 7);
  const Tokens after = some_tokens(5, 9);
  for (size_t kept = 1; kept <= 8; ++kept) {
    Tokens tokens = prompt;
    tokens.insert(tokens.end(), next.begin(), next.begin() + static_cast<long>(kept));
    tokens.insert(tokens.end(), after.begin(), after.end());
    const Logits want = all_logits(tiny, tokens);

    auto state = tiny.new_state();
    tiny.keep(*state, prompt, 0);
    const Logits drafts = tiny.attempt(*state, next);
    state->commit(static_cast<int64_t>(kept), tiny.model().compute());
    for (size_t i = 0; i < kept; ++i) {
      EXPECT_TRUE(same_bits(row(drafts, static_cast<int64_t>(i), tiny.vocab()),
                            row(want, static_cast<int64_t>(prompt.size() + i), tiny.vocab())));
    }
    const Logits got = tiny.keep(*state, after, static_cast<int64_t>(after.size()));
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_TRUE(same_bits(row(got, static_cast<int64_t>(i), tiny.vocab()),
                            row(want, static_cast<int64_t>(prompt.size() + kept + i), tiny.vocab())))
          << "after keeping " << kept << " of 9 rows";
    }
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
