// What holds for any bytes under any tokenizer that was accepted. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice {

inline std::string joined_bytes(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.bytes(id);
  return bytes;
}

// Ordinary text gives ordinary ids, whose bytes are the text.
inline void check_encode(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  for (const TokenId id : ids) CHECK(id >= 0 && id < tokenizer.special_base());
  CHECK(joined_bytes(tokenizer, ids) == text);
  const std::vector<TokenId> marked = tokenizer.encode_special(text);
  for (const TokenId id : marked) CHECK(id >= 0 && id < tokenizer.vocab_size());
  CHECK(joined_bytes(tokenizer, marked) == text);
}

// A stream of ids decodes to what all of them decode to, in whole characters.
inline void check_stream(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  StreamDecoder decoder(tokenizer);
  std::string streamed;
  for (const TokenId id : ids) {
    const std::string piece = decoder.push(id);
    std::string valid;
    append_utf8_lossy(piece, valid);
    CHECK(valid == piece);
    streamed += piece;
  }
  streamed += decoder.flush();
  CHECK(streamed == tokenizer.decode(ids));
}

}  // namespace sluice
