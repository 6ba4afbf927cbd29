// The header of a safetensors file: names, dtypes, shapes and byte ranges, checked against the
// file's size. Payload bytes are never read here. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/file.h"

namespace sluice {

enum class Dtype : uint8_t { kBf16, kF32, kU8, kF16, kI8, kI64, kOther };

const char* dtype_name(Dtype dtype);
uint64_t dtype_bytes(Dtype dtype);  // of one element; 0 for kOther

std::string shape_text(const std::vector<int64_t>& shape);  // "[2, 3]"

// One tensor of a file: `offset` counts from the start of the file.
struct TensorInfo {
  Dtype dtype = Dtype::kOther;
  std::vector<int64_t> shape;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct SafetensorsHeader {
  uint64_t header_bytes = 0;   // of the JSON, without its 8-byte length
  uint64_t payload_begin = 0;  // offset of the first payload byte
  uint64_t payload_bytes = 0;  // as the tensors' ranges cover it
};

// Calls `visit(name, info)` for every tensor in header order. Refuses (kCorrupt, naming file and
// tensor): a header that is not JSON or longer than the file, offsets that overflow, overlap, leave
// holes or pass the end of the file (truncated shard), byte counts that differ from dtype x shape,
// duplicate names.
using VisitTensor = std::function<Status(std::string_view name, const TensorInfo& info)>;
Result<SafetensorsHeader> read_safetensors_header(const File& file, const VisitTensor& visit);

}  // namespace sluice
