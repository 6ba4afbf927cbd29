// The bytes that make a slice real: fills files that have their headers. One owner; works with two
// threads of its own.
#pragma once

#include "base/error.h"
#include "format/generated_weights.h"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace sluice::slice {

class PayloadWriter {
 public:
  explicit PayloadWriter(uint64_t seed);

  // Writes what the holes of a shard or of a pack stand for.
  Status write(const std::filesystem::path& path) const;

  // Writes the int8 pack of the snapshot in `directory` with header, table, true checksums and a
  // payload of holes; returns its path.
  Result<std::filesystem::path> write_pack_head(const std::filesystem::path& directory) const;

 private:
  std::shared_ptr<const GeneratedWeights> weights_;
};

}  // namespace sluice::slice
