// A snapshot of Kimi K3's form with generated weights (src/format/generated_weights.h): every file
// that a program opens, with the released layout and order. One owner of the directory while it is
// written.
#pragma once

#include "base/error.h"
#include "make_slice/shape.h"
#include "make_slice/tensor_list.h"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace sluice::slice {

struct SliceOptions {
  std::filesystem::path directory;  // made if need be
  Shape shape;
  uint64_t seed = 1;
  bool headers_only = false;  // payloads are holes: for emulated drives and for plans
  bool pack = false;          // the int8 spine too, in <directory>/.sluice
};

// The payload of all shards, and the pack's beside them.
uint64_t payload_bytes(const Shape& shape);

// Writes the whole snapshot. kIo names the file that could not be written, kBudget says how much
// room it needs.
Status write_slice(const SliceOptions& options);

// Writes one shard: the header of `tensors` in their order, and a payload of holes.
Status write_shard(const std::filesystem::path& path, const std::vector<Tensor>& tensors);

// Writes the index without the tensor `left_out` (empty: of all).
Status write_index(const std::filesystem::path& directory, const Shape& shape,
                   std::string_view left_out);

}  // namespace sluice::slice
