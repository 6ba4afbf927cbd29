// The generated table behind text/unicode.h (tools/unicode/make_tables.py). Immutable data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

extern const char kUnicodeVersion[];  // "16.0.0"

// Rising code points; each entry is first code point << 8 | CharClass bits of the run it begins.
extern const uint32_t kCharRuns[];
extern const size_t kCharRunCount;

}  // namespace sluice
