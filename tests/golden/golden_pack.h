// The int8 pack of a checkpoint, made in a temporary directory that lives as long as this. One
// owner.
#pragma once

#include <memory>

#include "base/error.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "io/temp_directory.h"

namespace sluice {

class GoldenPack {
 public:
  static Result<std::unique_ptr<GoldenPack>> make(const Checkpoint& checkpoint, int threads);
  const PackFile& file() const { return *file_; }

 private:
  GoldenPack() = default;
  TempDirectory directory_;
  std::unique_ptr<PackFile> file_;
};

}  // namespace sluice
