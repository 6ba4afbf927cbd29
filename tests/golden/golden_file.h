// A goldens file: prompts with their expected ids, texts and logits (JSON), and named tensors
// (safetensors). Values; immutable after open.
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
  Json prompts;                                // array
  std::map<std::string, GoldenTensor> tensors; // "<prompt>.<tensor>"
  static Result<GoldenFile> open(const std::filesystem::path& json,
                                 const std::filesystem::path& safetensors);
};

// The segments of a golden prompt of kind "chat", rendered by our encoder from messages and options.
Result<std::vector<Segment>> render_golden(const Json& prompt);

}  // namespace sluice
