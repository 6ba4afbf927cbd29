// The bundled checkpoint opened, its bytes, and files of copies that are cut, for the store's
// tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "format/checkpoint.h"

namespace sluice {

inline Checkpoint open_checkpoint(const std::filesystem::path& directory, Direct direct) {
  auto checkpoint = Checkpoint::open(directory, direct);
  if (!checkpoint.ok()) {
    ADD_FAILURE() << checkpoint.error().what;
    std::abort();
  }
  return std::move(checkpoint).value();
}

// The bytes of a file's range, through the page cache.
inline std::vector<std::byte> file_bytes(const File& file, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> out(bytes);
  const Status status = file.read_at(offset, out);
  EXPECT_TRUE(status.ok()) << status.error().what;
  return out;
}

// Cuts a file behind the back of those who have it open; restore() brings the rest back.
class Truncation {
 public:
  Truncation(std::filesystem::path path, uint64_t kept_bytes)
      : path_(std::move(path)), saved_(path_.string() + ".saved") {
    CHECK(!std::filesystem::is_symlink(path_));  // never the bundled model itself
    std::filesystem::copy_file(path_, saved_);
    std::filesystem::resize_file(path_, kept_bytes);
  }
  void restore() {
    // Overwrites in place: open descriptors see the bytes again.
    std::filesystem::copy_file(saved_, path_, std::filesystem::copy_options::overwrite_existing);
  }

 private:
  std::filesystem::path path_, saved_;
};

}  // namespace sluice
