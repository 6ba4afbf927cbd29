// model.safetensors.index.json: which shard holds which tensor. One owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/name_table.h"

namespace sluice {

struct IndexEntry {
  int32_t file = -1;   // index into ShardIndex::files; -1: in a shard that is left out
  bool found = false;  // the shard's header has the tensor; set while headers are read
};

struct ShardIndex {
  std::vector<std::string> files;  // plain names, sorted
  NameTable tensors;
  std::vector<IndexEntry> entries;  // by the numbers of `tensors`
};

// Reads `path`. kIo when it cannot be read; kCorrupt when it is not an index, lists a tensor twice
// or names a file outside its directory.
Result<ShardIndex> read_shard_index(const std::filesystem::path& path);

}  // namespace sluice
