// Any bytes as text under the bundled vocabulary: splitting, merging, decoding.
#include "fuzz/bundled_tokenizer.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/text_checks.h"
#include "text/splitter.h"

namespace sluice {

void fuzz_text(std::string_view input) {
  const Tokenizer& tokenizer = bundled_tokenizer();
  check_encode(tokenizer, input);
  check_stream(tokenizer, tokenizer.encode(input));
  PreSplitter parts(input);
  size_t bytes = 0;
  for (std::string_view part = parts.next(); !part.empty(); part = parts.next()) {
    CHECK(part.data() == input.data() + bytes);
    bytes += part.size();
  }
  CHECK(bytes == input.size());
  // Tokens in any order: characters are cut and joined anywhere.
  std::vector<TokenId> ids;
  for (size_t i = 0; i + 1 < input.size(); i += 2) {
    const auto high = static_cast<uint8_t>(input[i]), low = static_cast<uint8_t>(input[i + 1]);
    ids.push_back(static_cast<TokenId>((high << 8 | low) % tokenizer.vocab_size()));
  }
  check_stream(tokenizer, ids);
}

}  // namespace sluice
