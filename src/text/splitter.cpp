#include "text/splitter.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice {
namespace {

struct Char {
  uint8_t bits;    // CharClass
  uint32_t bytes;  // 0 at the end of the text
};

// Matches each alternative of the pattern at one position. Positions are byte offsets; a match is
// reported as its end, and npos means no match.
class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text), classes_(CharTable::get()) {}

  size_t piece_end(size_t start) const {
    const Char first = at(start);
    if (first.bits & kHan) return run_end(start, kHan);
    size_t end = cased_word(start, first);
    if (end == kNone) end = upper_word(start, first);
    if (end == kNone && first.bits & kNumber) end = digits(start);
    if (end == kNone) end = symbols(start);
    if (end == kNone) end = spaces(start);
    return end;
  }

 private:
  static constexpr size_t kNone = std::string_view::npos;

  Char at(size_t pos) const {
    if (pos >= text_.size()) return {0, 0};
    const auto byte = static_cast<uint8_t>(text_[pos]);
    if (byte < 0x80) return {classes_[byte], 1};
    const Utf8Char c = decode_utf8(text_, pos);
    return {classes_[c.code_point], c.bytes};
  }

  size_t run_end(size_t pos, uint8_t bits) const {
    for (Char c = at(pos); c.bits & bits; c = at(pos)) pos += c.bytes;
    return pos;
  }

  // May stand before a word: neither CR, LF, letter nor number.
  static bool is_lead(Char c) { return c.bytes != 0 && !(c.bits & (kNewline | kLetter | kNumber)); }

  size_t cased_word(size_t start, Char first) const {
    size_t end = kNone;
    if (is_lead(first)) end = cased_word_body(start + first.bytes);
    if (end == kNone) end = cased_word_body(start);
    return end;
  }

  // U* W+ with the longest U*: a W run after the U run, or else the U run gives back all that
  // follows its last character that is also in W.
  size_t cased_word_body(size_t pos) const {
    size_t last_lower = kNone;  // end of the last such character
    Char c = at(pos);
    for (; c.bits & kUpperRun; c = at(pos)) {
      pos += c.bytes;
      if (c.bits & kLowerRun) last_lower = pos;
    }
    if (c.bits & kLowerRun) last_lower = run_end(pos, kLowerRun);
    return last_lower == kNone ? kNone : contraction_end(last_lower);
  }

  size_t upper_word(size_t start, Char first) const {
    size_t end = kNone;
    if (is_lead(first)) end = upper_word_body(start + first.bytes);
    if (end == kNone) end = upper_word_body(start);
    return end;
  }

  // U+ W*
  size_t upper_word_body(size_t pos) const {
    const size_t upper_end = run_end(pos, kUpperRun);
    return upper_end == pos ? kNone : contraction_end(run_end(upper_end, kLowerRun));
  }

  // An optional 's 't 're 've 'm 'll 'd in either case. U+017F folds to s.
  size_t contraction_end(size_t pos) const {
    if (pos + 1 >= text_.size() || text_[pos] != '\'') return pos;
    const auto lower = [&](size_t i) -> char {
      return i < text_.size() && text_[i] >= 'A' && text_[i] <= 'Z'
                 ? static_cast<char>(text_[i] + 32)
             : i < text_.size() ? text_[i]
                                : '\0';
    };
    switch (lower(pos + 1)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return pos + 2;
      case 'r':
      case 'v':
        return lower(pos + 2) == 'e' ? pos + 3 : pos;
      case 'l':
        return lower(pos + 2) == 'l' ? pos + 3 : pos;
      default:
        return text_.substr(pos + 1, 2) == "\xC5\xBF" ? pos + 3 : pos;
    }
  }

  size_t digits(size_t pos) const {
    for (int n = 0; n < 3; ++n) {
      const Char c = at(pos);
      if (!(c.bits & kNumber)) break;
      pos += c.bytes;
    }
    return pos;
  }

  size_t symbols(size_t start) const {
    size_t pos = text_[start] == ' ' ? start + 1 : start;
    const size_t body = pos;
    for (Char c = at(pos); c.bytes != 0 && !(c.bits & (kSpace | kLetter | kNumber)); c = at(pos)) {
      pos += c.bytes;
    }
    return pos == body ? kNone : run_end(pos, kNewline);
  }

  // A white-space run: through its last CR or LF; without one, all of it at the end of the text,
  // and else all but its last character, which goes to the next piece unless it is the only one.
  size_t spaces(size_t start) const {
    size_t pos = start, last_start = start, newline_end = kNone;
    for (Char c = at(pos); c.bits & kSpace; c = at(pos)) {
      last_start = pos;
      pos += c.bytes;
      if (c.bits & kNewline) newline_end = pos;
    }
    if (newline_end != kNone) return newline_end;
    return pos == text_.size() || last_start == start ? pos : last_start;
  }

  std::string_view text_;
  const CharTable& classes_;
};

}  // namespace

size_t next_piece(std::string_view text, size_t at) { return Matcher(text).piece_end(at) - at; }

std::string_view PreSplitter::next() {
  const CharTable& classes = CharTable::get();
  const size_t start = at_;
  const size_t left = text_.size() - at_;
  if (left <= kSameClassRunChars && slice_chars_ + left <= kSliceChars) {  // cannot reach a limit
    at_ = text_.size();
    return text_.substr(start);
  }
  size_t run_chars = 0;
  bool run_is_space = false;
  while (at_ < text_.size() && slice_chars_ < kSliceChars) {
    const Utf8Char c = decode_utf8(text_, at_);
    const bool is_space = (classes[c.code_point] & kPySpace) != 0;
    run_chars = is_space == run_is_space ? run_chars + 1 : 1;
    run_is_space = is_space;
    if (run_chars > kSameClassRunChars) return text_.substr(start, at_ - start);
    at_ += c.bytes;
    ++slice_chars_;
  }
  slice_chars_ = 0;
  return text_.substr(start, at_ - start);
}

}  // namespace sluice
