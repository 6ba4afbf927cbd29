// A checkpoint directory that tests may damage: tiny-k3 by symlinks, with own copies where asked.
// One owner.
#pragma once

#include <filesystem>
#include <string>

#include "format/checkpoint.h"
#include "io/temp_directory.h"

namespace sluice {

inline std::filesystem::path tiny_k3() {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "models" / "tiny-k3";
}

class TinyCopy {
 public:
  TinyCopy() {
    for (const auto& entry : std::filesystem::directory_iterator(tiny_k3())) {
      std::filesystem::create_symlink(entry.path(), path() / entry.path().filename());
    }
  }
  const std::filesystem::path& path() const { return directory_.path(); }

  // The path of `name` as a copy that may be written.
  std::filesystem::path own(const std::string& name) const {
    std::filesystem::remove(path() / name);
    std::filesystem::copy_file(tiny_k3() / name, path() / name);
    return path() / name;
  }
  std::filesystem::path own_shard(int number) const { return own(shard_name(number)); }
  static std::string shard_name(int number) {
    return std::string(number < 10 ? "model-0000" : "model-000") + std::to_string(number) +
           "-of-000010.safetensors";
  }
  Result<Checkpoint> open() const { return Checkpoint::open(path(), Direct::kAuto); }

 private:
  TempDirectory directory_;
};

}  // namespace sluice
