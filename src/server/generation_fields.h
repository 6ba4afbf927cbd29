// The fields that chat and plain completions share: sampling, stop strings, streaming, number of
// choices. Pure function; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/sampler.h"
#include "server/fields.h"

namespace sluice {

constexpr int64_t kChoicesMax = 128;
constexpr int64_t kTopLogprobsMax = 20;

struct GenerationFields {
  std::string model;  // empty when absent
  bool stream = false;
  bool include_usage = false;     // stream_options
  bool include_progress = false;  // stream_options; ours
  int64_t n = 1;
  std::optional<int64_t> max_tokens;
  std::vector<std::string> stop;
  SamplingParams sampling;  // logit_bias ids are checked on submission
};

// kInvalid names the field. Without a seed each request gets another one.
Result<GenerationFields> parse_generation(const Fields& fields);

// kUnsupported when a field is there that asks for what is not done: `reason` ends the sentence
// "<key> is not supported: ...".
Status refuse_field(const Fields& fields, const char* key, const char* reason);

}  // namespace sluice
