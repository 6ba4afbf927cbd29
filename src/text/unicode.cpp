#include "text/unicode.h"

#include "base/error.h"
#include "text/unicode_table.h"
#include "text/utf8.h"

#include <cstring>

namespace sluice {

const CharTable& CharTable::get() {
  static const CharTable table;
  return table;
}

CharTable::CharTable() {
  uint32_t distinct = 0;
  size_t run = 0;
  for (uint32_t page = 0; page < kPages; ++page) {
    uint8_t bits[256];
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t code_point = page << 8 | i;
      if (run + 1 < kCharRunCount && kCharRuns[run + 1] >> 8 == code_point) ++run;
      bits[i] = static_cast<uint8_t>(kCharRuns[run]);
    }
    uint32_t same = 0;
    while (same < distinct && std::memcmp(pages_ + same * 256, bits, 256) != 0) ++same;
    if (same == distinct) {
      CHECK(distinct < kDistinctMax);
      std::memcpy(pages_ + distinct++ * 256, bits, 256);
    }
    page_of_[page] = static_cast<uint8_t>(same);
  }
}

bool is_blank(std::string_view text) {
  const CharTable& classes = CharTable::get();
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (!(classes[c.code_point] & kPySpace)) return false;
    at += c.bytes;
  }
  return true;
}

}  // namespace sluice
