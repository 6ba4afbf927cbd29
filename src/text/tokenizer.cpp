#include "text/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "text/bpe.h"
#include "text/splitter.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr std::string_view kModelFile = "tiktoken.model";
constexpr std::string_view kConfigFile = "tokenizer_config.json";

Error bad_config(const std::string& problem) {
  return Error{Code::kInvalid,
               std::string(kConfigFile) + ": " + problem + "; fetch the file again"};
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view tiktoken_model,
                                   std::string_view tokenizer_config_json) {
  TRY(RankTable ranks, RankTable::parse(tiktoken_model, kModelFile));
  Tokenizer tokenizer(std::move(ranks));
  TRY_OK(tokenizer.read_specials(tokenizer_config_json));
  TRY_OK(tokenizer.index_specials());
  return tokenizer;
}

Status Tokenizer::read_specials(std::string_view tokenizer_config_json) {
  spellings_.resize(kSpecialTokens);
  for (TokenId i = 0; i < kSpecialTokens; ++i) {
    spellings_[static_cast<size_t>(i)] =
        "<|reserved_token_" + std::to_string(special_base() + i) + "|>";
  }
  TRY(const Json config, parse_json(tokenizer_config_json, kConfigFile));
  if (!config.is_object()) return bad_config("the file is not a JSON object");
  const auto added = config.find("added_tokens_decoder");
  if (added == config.end()) return Ok{};
  if (!added->is_object()) return bad_config("added_tokens_decoder is not an object");
  for (const auto& [key, entry] : added->items()) {
    const std::string where = "added_tokens_decoder entry \"" + key + "\"";
    TokenId id = -1;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc() || end != key.data() + key.size()) {
      return bad_config(where + " is not a token id");
    }
    if (!is_special(id)) {
      return bad_config(where + " is outside the special ids " + std::to_string(special_base()) +
                        " to " + std::to_string(vocab_size() - 1));
    }
    const auto content = entry.is_object() ? entry.find("content") : entry.end();
    if (!entry.is_object() || content == entry.end() || !content->is_string() ||
        content->get_ref<const std::string&>().empty()) {
      return bad_config(where + " has no content string");
    }
    spellings_[static_cast<size_t>(id - special_base())] = content->get<std::string>();
  }
  return Ok{};
}

Status Tokenizer::index_specials() {
  by_first_byte_.resize(256);
  for (TokenId i = 0; i < kSpecialTokens; ++i) {
    const std::string& spelling = spellings_[static_cast<size_t>(i)];
    const TokenId id = special_base() + i;
    const auto [other, is_new] = of_spelling_.emplace(spelling, id);
    if (!is_new) {
      return bad_config("ids " + std::to_string(other->second) + " and " + std::to_string(id) +
                        " are both spelled \"" + spelling + "\"");
    }
    by_first_byte_[static_cast<uint8_t>(spelling[0])].push_back(id);
  }
  for (std::vector<TokenId>& ids : by_first_byte_) {
    std::sort(ids.begin(), ids.end(),
              [&](TokenId a, TokenId b) { return bytes(a).size() > bytes(b).size(); });
  }
  const std::pair<std::string_view, TokenId*> wanted[] = {{"<|end_of_msg|>", &control_.end_of_msg},
                                                          {"<|open|>", &control_.open},
                                                          {"<|close|>", &control_.close},
                                                          {"<|sep|>", &control_.sep}};
  for (const auto& [spelling, id] : wanted) {
    const std::optional<TokenId> found = special(spelling);
    if (!found) {
      return bad_config("added_tokens_decoder names no " + std::string(spelling) +
                        ", which every chat needs");
    }
    *id = *found;
  }
  return Ok{};
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> ids;
  append_ordinary(text, ids);
  return ids;
}

std::vector<TokenId> Tokenizer::encode_special(std::string_view text) const {
  std::vector<TokenId> ids;
  append_special(text, ids);
  return ids;
}

std::vector<TokenId> Tokenizer::encode(std::span<const Segment> segments) const {
  std::vector<TokenId> ids;
  for (const Segment& segment : segments) {
    segment.markup ? append_special(segment.text, ids) : append_ordinary(segment.text, ids);
  }
  return ids;
}

void Tokenizer::append_ordinary(std::string_view text, std::vector<TokenId>& out) const {
  PreSplitter parts(text);
  for (std::string_view part = parts.next(); !part.empty(); part = parts.next()) {
    append_pieces(part, out);
  }
}

// Pre-splitting comes first, as in the original: a spelling across a cut is not found.
void Tokenizer::append_special(std::string_view text, std::vector<TokenId>& out) const {
  PreSplitter parts(text);
  for (std::string_view part = parts.next(); !part.empty(); part = parts.next()) {
    size_t ordinary = 0;  // begin of what is not yet encoded
    for (size_t at = 0; at < part.size();) {
      const std::optional<TokenId> id = special_at(part, at);
      if (!id) {
        ++at;
        continue;
      }
      append_pieces(part.substr(ordinary, at - ordinary), out);
      out.push_back(*id);
      at += bytes(*id).size();
      ordinary = at;
    }
    append_pieces(part.substr(ordinary), out);
  }
}

void Tokenizer::append_pieces(std::string_view part, std::vector<TokenId>& out) const {
  for (size_t at = 0; at < part.size();) {
    const size_t bytes = next_piece(part, at);
    append_bpe(ranks_, part.substr(at, bytes), out);
    at += bytes;
  }
}

std::optional<TokenId> Tokenizer::special_at(std::string_view text, size_t at) const {
  for (const TokenId id : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    if (text.substr(at).starts_with(bytes(id))) return id;
  }
  return std::nullopt;
}

std::string_view Tokenizer::bytes(TokenId id) const {
  CHECK(id >= 0 && id < vocab_size());
  return id < special_base() ? ranks_.bytes(id)
                             : spellings_[static_cast<size_t>(id - special_base())];
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string joined, text;
  for (const TokenId id : ids) joined += bytes(id);
  append_utf8_lossy(joined, text);
  return text;
}

std::optional<TokenId> Tokenizer::special(std::string_view spelling) const {
  const auto found = of_spelling_.find(std::string(spelling));
  if (found == of_spelling_.end()) return std::nullopt;
  return found->second;
}

}  // namespace sluice
