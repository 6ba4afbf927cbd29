// model.safetensors.index.json: which shard holds which tensor. One owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace sluice {

struct IndexEntry {
  int32_t file = -1;   // index into ShardIndex::files
  bool found = false;  // the shard's header has the tensor; set while headers are read
};

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};
using IndexMap = std::unordered_map<std::string, IndexEntry, NameHash, std::equal_to<>>;

struct ShardIndex {
  std::vector<std::string> files;  // plain names, sorted
  IndexMap tensors;
};

// Reads `path`. kIo when it cannot be read; kCorrupt when it is not an index, lists a tensor twice
// or names a file outside its directory.
Result<ShardIndex> read_shard_index(const std::filesystem::path& path);

}  // namespace sluice
