// Tokenizer files. Sections: lines of tiktoken.model behind the 256 single bytes (a section that
// begins with "!" is the whole file instead), tokenizer_config.json, and a text to encode.
#include <string>

#include "fuzz/fuzz_targets.h"
#include "fuzz/sections.h"
#include "fuzz/text_checks.h"

namespace sluice {
namespace {

// "<base64 of one byte> <rank>" for every byte.
std::string single_bytes() {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string lines;
  for (size_t byte = 0; byte < 256; ++byte) {
    lines += kDigits[byte >> 2];
    lines += kDigits[(byte & 3) << 4];
    lines += "== " + std::to_string(byte) + "\n";
  }
  return lines;
}

}  // namespace

void fuzz_tokenizer(std::string_view input) {
  static const std::string kSingleBytes = single_bytes();
  const std::vector<std::string_view> parts = sections(input, 3);
  const bool whole = parts[0].starts_with('!');
  const std::string ranks =
      whole ? std::string(parts[0].substr(1)) : kSingleBytes + std::string(parts[0]);
  const Result<Tokenizer> parsed = Tokenizer::parse(ranks, parts[1]);
  if (!parsed.ok()) {
    const std::string& what = parsed.error().what;
    CHECK(what.starts_with("tiktoken.model") || what.starts_with("tokenizer_config.json"));
    return;
  }
  const Tokenizer& tokenizer = parsed.value();
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) CHECK(!tokenizer.bytes(id).empty());
  for (TokenId id = tokenizer.special_base(); id < tokenizer.vocab_size(); ++id) {
    CHECK(tokenizer.special(tokenizer.bytes(id)) == id);
    CHECK(tokenizer.encode_special(tokenizer.bytes(id)).size() == 1);
  }
  check_encode(tokenizer, parts[2]);
  check_stream(tokenizer, tokenizer.encode_special(parts[2]));
}

}  // namespace sluice
