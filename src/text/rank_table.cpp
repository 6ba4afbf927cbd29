#include "text/rank_table.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sluice {
namespace {

constexpr size_t kModelBytesMax = size_t{1} << 30;  // ends_ are 32-bit offsets

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

// Strict: padded, no stray characters, not empty.
bool decode_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  size_t digits = text.size();
  while (digits > text.size() - 2 && text[digits - 1] == '=') --digits;
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int value = base64_value(text[i]);
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<char>(bits >> held & 0xFF));
    }
  }
  return true;
}

Error bad_line(std::string_view name, size_t line, const std::string& problem) {
  return Error{Code::kCorrupt, std::string(name) + " line " + std::to_string(line) + ": " +
                                   problem + "; fetch the file again"};
}

std::string_view without_tail_space(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(without_tail_space(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

Result<RankTable> RankTable::parse(std::string_view model, std::string_view name) {
  if (model.size() > kModelBytesMax) {
    return Error{Code::kCorrupt, std::string(name) +
                                     ": larger than 1 GiB, so not a vocabulary; "
                                     "check the path"};
  }
  const std::vector<std::string_view> lines = lines_of(model);
  std::vector<Entry> entries(lines.size());
  std::string bytes;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      return bad_line(name, i + 1, "wants base64, a space and a rank");
    }
    if (!decode_base64(line.substr(0, space), bytes)) {
      return bad_line(name, i + 1, "\"" + std::string(line.substr(0, space)) + "\" is not base64");
    }
    const std::string_view number = line.substr(space + 1);
    size_t rank = 0;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (problem != std::errc() || end != number.data() + number.size()) {
      return bad_line(name, i + 1, "\"" + std::string(number) + "\" is not a rank");
    }
    if (rank >= lines.size()) {
      return bad_line(name, i + 1,
                      "rank " + std::to_string(rank) +
                          " leaves a gap: " + std::to_string(lines.size()) +
                          " lines must hold ranks 0 to " + std::to_string(lines.size() - 1));
    }
    if (entries[rank].line != 0) {
      return bad_line(name, i + 1,
                      "rank " + std::to_string(rank) + " stands on line " +
                          std::to_string(entries[rank].line) + " too");
    }
    entries[rank] = Entry{std::move(bytes), i + 1};
  }
  RankTable table;
  TRY_OK(table.build(entries, name));
  return table;
}

Status RankTable::build(const std::vector<Entry>& entries, std::string_view name) {
  of_pair_.assign(size_t{1} << 16, kNone);
  for (TokenId& id : of_byte_) id = kNone;
  size_t slots = 16;
  while (slots < entries.size() * 2) slots *= 2;
  slots_.assign(slots, Slot{0, kNone});
  mask_ = slots - 1;
  for (const Entry& entry : entries) longest_bytes_ = std::max(longest_bytes_, entry.bytes.size());
  for (const Entry& entry : entries) {
    const std::string& token = entry.bytes;
    if (const TokenId other = find(token); other != kNone) {
      return bad_line(name, entry.line,
                      "the same bytes stand on line " +
                          std::to_string(entries[static_cast<size_t>(other)].line) + " too");
    }
    const TokenId id = size();
    blob_ += token;
    ends_.push_back(static_cast<uint32_t>(blob_.size()));
    if (token.size() == 1) {
      of_byte_[first(token)] = id;
    } else if (token.size() == 2) {
      of_pair_[static_cast<size_t>(first(token)) << 8 | static_cast<uint8_t>(token[1])] = id;
    } else {
      const uint32_t hash = hash_of(token);
      size_t at = hash & mask_;
      while (slots_[at].id != kNone) at = (at + 1) & mask_;
      slots_[at] = Slot{hash, id};
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (of_byte_[byte] != kNone) continue;
    return Error{Code::kCorrupt, std::string(name) + ": byte " + std::to_string(byte) +
                                     " has no rank of its own, so not every text could be encoded; "
                                     "fetch the file again"};
  }
  return Ok{};
}

}  // namespace sluice
