// UTF-8 as the tokeniser meets it: never trusted, never refused.
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

constexpr uint32_t kReplacement = 0xFFFD;

struct Utf8Char {
  uint32_t code_point;  // kReplacement for a byte that starts no well-formed character
  uint32_t bytes;       // 1..4; 1 for such a byte
};

// The character at byte `at` < text.size(). Surrogates, overlong forms and values above U+10FFFF
// are not well-formed.
inline Utf8Char decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const auto is_tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const size_t left = text.size() - at;
  const uint32_t b0 = byte(0);
  if (b0 < 0x80) return {b0, 1};
  if (b0 >= 0xC2 && b0 < 0xE0) {
    if (left >= 2 && is_tail(1)) return {(b0 & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2};
  } else if (b0 >= 0xE0 && b0 < 0xF0) {
    if (left >= 3 && is_tail(1) && is_tail(2)) {
      const uint32_t c = (b0 & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
      if (c >= 0x800 && (c < 0xD800 || c > 0xDFFF)) return {c, 3};
    }
  } else if (b0 >= 0xF0 && b0 < 0xF5) {
    if (left >= 4 && is_tail(1) && is_tail(2) && is_tail(3)) {
      const uint32_t c =
          (b0 & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
      if (c >= 0x10000 && c <= 0x10FFFF) return {c, 4};
    }
  }
  return {kReplacement, 1};
}

// Appends all of `bytes` but a cut-off character at its end to `out` and returns the number of
// bytes taken, so that at most 3 stay. Each maximal ill-formed part becomes one U+FFFD, as in
// Python's errors="replace".
size_t append_utf8_complete(std::string_view bytes, std::string& out);

// Appends all of `bytes`; a cut-off character at the end becomes one U+FFFD.
void append_utf8_lossy(std::string_view bytes, std::string& out);

}  // namespace sluice
