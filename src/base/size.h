// Byte sizes as people write them: 64GiB (binary), 64GB (decimal), bare numbers are bytes.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// "64GiB", "1.5 GB", "4096" -> bytes. kInvalid names the text for anything else.
Result<uint64_t> parse_size(std::string_view text);

// Three significant digits in decimal units: 17.5 MB, 1.56 TB.
std::string format_size(uint64_t bytes);

}  // namespace sluice
