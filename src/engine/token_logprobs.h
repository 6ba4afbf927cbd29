// Log probabilities of tokens as clients ask for them, and when those of a reply may be shown: not
// before the text they belong to. One owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/reply_text.h"

namespace sluice {

struct TokenChance {
  TokenId id = -1;
  double logprob = 0.0;  // of the raw logits
};

struct TokenLogprobs {
  TokenChance token;
  std::vector<TokenChance> top;  // the most likely tokens, falling; ties by rising id
};

// `id` and the `n_top` most likely tokens by one row of finite logits.
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, int64_t n_top);

// Holds the entries of a reply's tokens back until their text is out, and drops those of tokens
// that belong to no text: thinking, tool calls, markup, and what a stop string cut off.
class LogprobGate {
 public:
  explicit LogprobGate(ReplyForm form) : raw_(form == ReplyForm::kRaw) {}

  // The next token of the reply and what the text unit made of it. Returns the entries to show now.
  std::vector<TokenLogprobs> push(TokenLogprobs entry, bool special, const TextDelta& delta);
  // The last entries, with the text unit's last delta; `stopped`: a stop string ended the text.
  std::vector<TokenLogprobs> finish(const TextDelta& delta, bool stopped);

 private:
  struct Held {
    TokenLogprobs entry;
    size_t offset;  // bytes of text before the token
  };
  std::vector<TokenLogprobs> release(bool all);

  bool raw_;
  std::vector<Held> undecided_;  // tokens without text so far
  std::deque<Held> held_;        // tokens of the text
  size_t text_bytes_ = 0;        // before the search for stop strings
  size_t shown_bytes_ = 0;
};

}  // namespace sluice
