// What one pass computes: rows of one or several sequences. Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace sluice {

class State;

// kKeep: a prompt; every row stays, the state as it was before is kept until the pass succeeds.
// kTentative: rows that may be rolled back (a decode row, drafts); State::commit decides.
enum class RowFate { kKeep, kTentative };

// Consecutive rows of one sequence: positions state->length(), state->length() + 1, ...
struct SequenceRows {
  State* state = nullptr;
  std::vector<TokenId> tokens;  // never empty
  RowFate fate = RowFate::kKeep;
  int64_t n_logits = 0;  // logits are wanted for the last n_logits rows
};

// The rows of a pass, sequence after sequence. No state appears twice.
struct Batch {
  std::vector<SequenceRows> sequences;
  int64_t n_rows() const {
    int64_t n = 0;
    for (const SequenceRows& s : sequences) n += static_cast<int64_t>(s.tokens.size());
    return n;
  }
  int64_t n_logits() const {
    int64_t n = 0;
    for (const SequenceRows& s : sequences) n += s.n_logits;
    return n;
  }
};

}  // namespace sluice
