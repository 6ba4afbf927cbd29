// Turns token ids into text as they come. What push and flush return, joined, is Tokenizer::decode
// of all ids, and every return is complete UTF-8. One owner.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace sluice {

class StreamDecoder {
 public:
  // `tokenizer` outlives this object.
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The text that became complete; up to 3 bytes of a character cut off at the end stay held.
  std::string push(TokenId id);

  // What is held, as U+FFFD, or nothing. The decoder is then as new.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
};

}  // namespace sluice
