// What the int8 pack of a checkpoint holds and where, computed before a byte is written
// (docs/FORMAT.md part 2). A pure function of the checkpoint; immutable; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "format/checkpoint.h"
#include "format/safetensors.h"
#include "format/tensor_names.h"

namespace sluice {

constexpr std::string_view kPackName = "spine-int8.v1.pack";
constexpr uint32_t kPackVersion = 1;
// Every matrix but the embeddings and the routers as int8 with a scale for each row; everything
// else as stored.
constexpr std::string_view kPackPolicy = "k3i8";
constexpr uint64_t kPackHeaderBytes = 4096;
constexpr uint64_t kPackFooterBytes = 32;

struct PackTensor {
  Role role = Role::kCount;
  std::string name;  // without the checkpoint's prefix
  Dtype dtype = Dtype::kOther;
  TensorKind kind = TensorKind::kMatrix;
  std::vector<int64_t> shape;
  int64_t rows = 0, cols = 0;  // as TensorRef
  uint64_t offset = 0;         // in the pack, a multiple of 64
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // XXH3-64 of the bytes; 0 until written or read
  // kI8: fp32 scales [rows] begin this many bytes after the first code.
  uint64_t scales_at() const { return static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols); }
  bool has_scales() const { return dtype == Dtype::kI8; }
};

// The tensors of a layer, or the head alone: adjacent, from a multiple of 4 KiB on; matrices first.
struct PackGroup {
  uint64_t offset = 0;
  uint64_t matrix_bytes = 0;    // from `offset` to the end of the last matrix: what a pass streams
  uint64_t bytes = 0;           // to the end of the last tensor
  uint64_t entries_offset = 0;  // of its entries in the table, in the pack
  uint64_t entries_bytes = 0;
  std::vector<PackTensor> tensors;
  const PackTensor* find(Role role) const;  // null when the group has no such tensor
};

struct PackLayout {
  std::string fingerprint;        // of the checkpoint, 64 hex digits
  std::vector<PackGroup> groups;  // [n_layers + 1]: the layers, then the head
  uint64_t table_offset = 0;
  uint64_t table_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t payload_bytes() const;  // of all tensors
  const PackGroup& layer(LayerId id) const { return groups[static_cast<size_t>(id.v)]; }
  const PackTensor& head() const { return groups.back().tensors.front(); }
};

PackLayout plan_pack(const Checkpoint& checkpoint, std::string fingerprint);

// The snapshot's tensor that a tensor of group `group` is made from.
const TensorRef& pack_source(const Checkpoint& checkpoint, size_t group, Role role);

}  // namespace sluice
