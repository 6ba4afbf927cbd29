// Values of options as they are typed: strict, with errors that name the option. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/options.h"
#include "engine/sampler.h"

namespace sluice {

constexpr double kSamplingMax = 1e6;  // the sampler's own bound

// An error of usage.
Error usage(std::string what);

Status parse_spine(const std::string& text, SpineChoice& out);
Status parse_isa(const std::string& text, std::string& out);

// "ID=BIAS" or several of them with commas between.
Status parse_logit_bias(std::string_view text, std::vector<LogitBias>& out);

// "1,2,3" or "1 2 3" -> ids; kInvalid names the part that is no token id.
Result<std::vector<TokenId>> parse_ids(std::string_view text);

// "1,2,4" -> counts of 1 to 4,096; kInvalid names the option.
Result<std::vector<int64_t>> parse_counts(std::string_view option, std::string_view text);

// "7GB/s[,latency=80us][,drives=2]".
Result<EmulatedDrives> parse_emulated_drives(std::string_view text);

// "7.3GB/s" -> bytes a second; kInvalid names the text.
Result<uint64_t> parse_rate(std::string_view text);

}  // namespace sluice
