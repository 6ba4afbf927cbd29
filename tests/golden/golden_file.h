// A goldens file: prompts with their expected ids, texts and logits (JSON), and named tensors
// (safetensors). Values; immutable after open.
//
// A prompt is given as text, as messages (with options), or as ids alone. The JSON may say, at its
// top, the eps of the q_a and kv_a norms ("qkv_norm_eps") and the largest difference allowed
// ("tolerance", absolute, of logits and of every tensor): checkpoints whose values round worse or
// better state theirs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/segment.h"
#include "text/tokenizer.h"

namespace sluice {

struct GoldenTensor {
  std::vector<int64_t> shape;
  std::vector<float> floats;      // F32
  std::vector<int64_t> integers;  // I64
};

struct GoldenFile {
  Json prompts;  // array
  float qkv_norm_eps = 1e-5f;
  float tolerance = 1e-3f;
  std::map<std::string, GoldenTensor> tensors;  // "<prompt>.<tensor>"
  bool has_text() const;  // a prompt holds text or messages, so that a tokenizer is needed
  static Result<GoldenFile> open(const std::filesystem::path& json,
                                 const std::filesystem::path& safetensors);
};

// The segments of a golden prompt of kind "chat", rendered by our encoder from messages and
// options.
Result<std::vector<Segment>> render_golden(const Json& prompt);

}  // namespace sluice
