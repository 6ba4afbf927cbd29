#include "text/utf8.h"

namespace sluice {
namespace {

constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

// A beginning of a well-formed character that lacks its end.
struct Prefix {
  size_t bytes;     // 0 if the first byte begins no character
  bool at_the_end;  // more input could complete it
};

// Requires: text[at..] does not begin with a complete well-formed character (Unicode table 3-7).
Prefix prefix_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t b0 = byte(0);
  const size_t length = b0 >= 0xC2 && b0 < 0xE0   ? 2
                        : b0 >= 0xE0 && b0 < 0xF0 ? 3
                        : b0 >= 0xF0 && b0 < 0xF5 ? 4
                                                  : 0;
  if (length == 0) return {0, false};
  size_t n = 1;
  for (; n < length && at + n < text.size(); ++n) {
    const uint8_t low = n > 1 ? 0x80 : b0 == 0xE0 ? 0xA0 : b0 == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = n > 1 ? 0xBF : b0 == 0xED ? 0x9F : b0 == 0xF4 ? 0x8F : 0xBF;
    if (byte(n) < low || byte(n) > high) return {n, false};
  }
  return {n, true};
}

}  // namespace

size_t append_utf8_complete(std::string_view bytes, std::string& out) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Char c = decode_utf8(bytes, at);
    if (c.bytes > 1 || static_cast<uint8_t>(bytes[at]) < 0x80) {
      out.append(bytes, at, c.bytes);
      at += c.bytes;
      continue;
    }
    const Prefix prefix = prefix_at(bytes, at);
    if (prefix.at_the_end) break;
    out += kReplacementUtf8;
    at += prefix.bytes == 0 ? 1 : prefix.bytes;
  }
  return at;
}

void append_utf8_lossy(std::string_view bytes, std::string& out) {
  if (append_utf8_complete(bytes, out) < bytes.size()) out += kReplacementUtf8;
}

}  // namespace sluice
