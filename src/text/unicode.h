// Character classes of the pre-tokeniser (spec 6.2, 6.4), from one Unicode version
// (kUnicodeVersion). Thread-safe; the lookup table is built once, on first use, and never changes.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

// Bits of a code point's class. tools/unicode/make_tables.py writes the same values.
enum CharClass : uint8_t {
  kLetter = 1 << 0,    // L
  kNumber = 1 << 1,    // N, with Nl and No
  kUpperRun = 1 << 2,  // Lu, Lt, Lm, Lo or M, and not Han
  kLowerRun = 1 << 3,  // Ll, Lm, Lo or M, and not Han
  kHan = 1 << 4,       // script Han
  kSpace = 1 << 5,     // White_Space
  kPySpace = 1 << 6,   // Python's str.isspace(): White_Space and U+001C..U+001F
  kNewline = 1 << 7,   // CR or LF
};

constexpr uint32_t kCodePointMax = 0x10FFFF;

// Classes by code point in two levels: 256 code points share a page, and equal pages are stored
// once.
class CharTable {
 public:
  static const CharTable& get();

  // `code_point` <= kCodePointMax.
  uint8_t operator[](uint32_t code_point) const {
    return pages_[static_cast<uint32_t>(page_of_[code_point >> 8] << 8) | (code_point & 0xFF)];
  }

 private:
  static constexpr uint32_t kPages = (kCodePointMax >> 8) + 1;
  static constexpr uint32_t kDistinctMax = 256;  // page_of_ is one byte

  CharTable();

  uint8_t page_of_[kPages];
  uint8_t pages_[kDistinctMax * 256];
};

// True if `text` is empty or holds nothing but what Python's str.strip() removes.
bool is_blank(std::string_view text);

}  // namespace sluice
