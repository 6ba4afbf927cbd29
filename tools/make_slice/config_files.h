// The small files of Kimi K3 or of a slice of it: config.json as spec 1.1 lists it, the tokenizer's
// two files as spec 6.1 does, with made-up byte strings for the ranks. Pure functions.
#pragma once

#include "base/json.h"
#include "make_slice/shape.h"

#include <string>

namespace sluice::slice {

Json config_json(const Shape& shape);

// The 16 special tokens that have a spelling of their own.
Json tokenizer_config_json();

// 163,584 ranks: the 256 bytes, then distinct strings of three letters or digits.
std::string tiktoken_model();

}  // namespace sluice::slice
