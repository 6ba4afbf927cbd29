// The law, checked of one model: logits are a function of the tokens alone, bit for bit. Each check
// fails the running test where two ways to compute the same rows differ.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "model/tiny_model.h"

namespace sluice::testing {

using Tokens = std::vector<TokenId>;

inline Tokens sub(const Tokens& tokens, size_t begin, size_t end) {
  return {tokens.begin() + static_cast<long>(begin), tokens.begin() + static_cast<long>(end)};
}

inline Logits row(const Logits& logits, int64_t index, int64_t vocab) {
  return {logits.begin() + index * vocab, logits.begin() + (index + 1) * vocab};
}

inline Logits concatenate(Logits a, const Logits& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Logits of every row of `tokens`, computed in one pass, or in the longest that the plan allows.
inline Logits all_logits(TinyModel& tiny, const Tokens& tokens) {
  auto state = tiny.new_state();
  Logits logits;
  const auto chunk = static_cast<size_t>(tiny.model().rows_max());
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t end = std::min(tokens.size(), begin + chunk);
    logits = concatenate(std::move(logits), tiny.keep(*state, sub(tokens, begin, end),
                                                      static_cast<int64_t>(end - begin)));
  }
  return logits;
}

// The prompt in two passes, cut before each of `cuts`, against one pass.
inline void expect_cuts_equal(TinyModel& tiny, const Tokens& tokens,
                              const std::vector<size_t>& cuts) {
  const Logits whole = all_logits(tiny, tokens);
  for (const size_t cut : cuts) {
    auto state = tiny.new_state();
    Logits parts = tiny.keep(*state, sub(tokens, 0, cut), static_cast<int64_t>(cut));
    parts = concatenate(std::move(parts), tiny.keep(*state, sub(tokens, cut, tokens.size()),
                                                    static_cast<int64_t>(tokens.size() - cut)));
    ASSERT_TRUE(same_bits(whole, parts)) << "cut at " << cut;
  }
}

// 1 .. n - 1: every place to cut `n` tokens.
inline std::vector<size_t> all_cuts(size_t n) {
  std::vector<size_t> cuts;
  for (size_t cut = 1; cut < n; ++cut) cuts.push_back(cut);
  return cuts;
}

// Single committed rows against one pass.
inline void expect_single_rows_equal(TinyModel& tiny, const Tokens& tokens) {
  const Logits whole = all_logits(tiny, tokens);
  auto state = tiny.new_state();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Logits one = tiny.attempt(*state, {tokens[i]});
    state->commit(1, tiny.model().compute());
    ASSERT_TRUE(same_bits(one, row(whole, static_cast<int64_t>(i), tiny.vocab()))) << i;
  }
}

// Sequences that share passes in uneven steps (prompts of changing length beside single rows, in
// changing order) against each alone.
inline void expect_interleaved_equal(TinyModel& tiny, const std::vector<Tokens>& tokens) {
  const size_t n = tokens.size();
  std::vector<Logits> together(n);
  std::vector<std::unique_ptr<State>> states(n);
  std::vector<size_t> done(n, 0);
  for (auto& state : states) state = tiny.new_state();
  for (size_t pass = 0;; ++pass) {
    Batch batch;
    std::vector<size_t> order;
    for (size_t i = 0; i < n; ++i) {
      const size_t s = (i + pass) % n;
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
      Logits& so_far = together[order[i]];
      for (int64_t r = 0; r < rows.n_logits; ++r) {
        so_far = concatenate(std::move(so_far), row(logits, at++, tiny.vocab()));
      }
      if (rows.fate == RowFate::kTentative) {
        rows.state->commit(rows.n_logits, tiny.model().compute());
      }
      done[order[i]] += rows.tokens.size();
    }
  }
  for (size_t s = 0; s < n; ++s) {
    EXPECT_TRUE(same_bits(all_logits(tiny, tokens[s]), together[s])) << "sequence " << s;
  }
}

// Memory limits from the plan's floor to everything, in `n_steps` steps, against plenty.
inline void expect_memory_equal(TinyOptions options, const Tokens& tokens, uint64_t n_steps) {
  TinyModel rich(options);
  const Logits want = all_logits(rich, tokens);
  const uint64_t floor = rich.plan().floor_bytes;
  const uint64_t all = rich.plan().total_bytes();
  ASSERT_LT(floor, all);
  for (uint64_t step = 0; step <= n_steps; ++step) {
    options.ram_bytes = floor + (all - floor) * step / n_steps;
    TinyModel tiny(options);
    EXPECT_TRUE(same_bits(want, all_logits(tiny, tokens))) << "step " << step;
  }
}

// 9 tentative rows after `prompt`, `kept` of them committed, then `after`: against one pass over
// the rows that stayed.
inline void expect_rollback_equal(TinyModel& tiny, const Tokens& prompt, const Tokens& next,
                                  size_t kept, const Tokens& after) {
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
        << "after keeping " << kept << " of " << next.size() << " rows";
  }
}

}  // namespace sluice::testing
