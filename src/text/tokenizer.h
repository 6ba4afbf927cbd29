// The checkpoint's tokenizer: byte-level BPE with Kimi's split pattern and 256 special tokens
// (spec 6). Immutable after parse; thread-safe.
//
// Ids below special_base() are ranks of tiktoken.model; the 256 above are special. Only
// encode_special and markup segments ever produce a special id: ordinary text cannot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "text/rank_table.h"
#include "text/segment.h"

namespace sluice {

constexpr TokenId kSpecialTokens = 256;

// The ids that structure a chat (spec 7.1).
struct ControlTokens {
  TokenId end_of_msg, open, close, sep;
};

class Tokenizer {
 public:
  // Takes the texts of the two files. kCorrupt or kInvalid names the file and the line or entry.
  static Result<Tokenizer> parse(std::string_view tiktoken_model,
                                 std::string_view tokenizer_config_json);

  // Ordinary text: spellings of special tokens are characters like any others. Any bytes encode.
  std::vector<TokenId> encode(std::string_view text) const;

  // As encode, but each spelling of a special token becomes its id; of several that begin at one
  // place the longest.
  std::vector<TokenId> encode_special(std::string_view text) const;

  // Each segment by itself, ids concatenated.
  std::vector<TokenId> encode(std::span<const Segment> segments) const;

  // 0 <= id < vocab_size(). A special token's bytes are its spelling. The view lives as long as
  // this object.
  std::string_view bytes(TokenId id) const;

  // The tokens' bytes joined, ill-formed UTF-8 replaced by U+FFFD. Ids as in bytes().
  std::string decode(std::span<const TokenId> ids) const;

  int64_t vocab_size() const { return special_base() + kSpecialTokens; }
  TokenId special_base() const { return ranks_.size(); }
  bool is_special(TokenId id) const { return id >= special_base() && id < vocab_size(); }
  std::optional<TokenId> special(std::string_view spelling) const;
  const ControlTokens& control() const { return control_; }

 private:
  explicit Tokenizer(RankTable ranks) : ranks_(std::move(ranks)) {}
  Status read_specials(std::string_view tokenizer_config_json);
  Status index_specials();

  void append_ordinary(std::string_view text, std::vector<TokenId>& out) const;
  void append_special(std::string_view text, std::vector<TokenId>& out) const;
  void append_pieces(std::string_view part, std::vector<TokenId>& out) const;
  // The special token spelled at text[at..], or nothing.
  std::optional<TokenId> special_at(std::string_view text, size_t at) const;

  RankTable ranks_;
  std::vector<std::string> spellings_;  // [256] by id - special_base()
  std::unordered_map<std::string, TokenId> of_spelling_;
  std::vector<std::vector<TokenId>> by_first_byte_;  // [256], longest spelling first
  ControlTokens control_{};
};

}  // namespace sluice
