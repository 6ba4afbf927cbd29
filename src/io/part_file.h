// A large file that comes into being: written in place under "<path>.part", renamed when it is
// whole, so that nobody takes half a file for a whole one; and the lock that keeps a second writer
// away. One owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/error.h"
#include "io/file.h"

namespace sluice {

class PartFile {
 public:
  // Opens "<path>.part", with what an earlier writer left in it, or makes it. kIo.
  static Result<PartFile> open(const std::filesystem::path& path);

  const std::filesystem::path& part_path() const { return part_path_; }
  uint64_t size() const { return size_; }
  // Starts again with an empty file; whoever has the old one open keeps it.
  Status discard();
  // Makes the file `bytes` long and takes the room on the drive, keeping what is in it. kBudget
  // names the bytes needed and free when they do not fit.
  Status reserve(uint64_t bytes);
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  // All bytes reach the drive, then the file gets its name, then the name reaches the drive.
  Status commit();

 private:
  Status make();
  Error error(const char* action, int number) const;

  std::filesystem::path path_, part_path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

// An exclusive lock on a file of its own, held while this object lives. The kernel drops it when
// the process ends, however it ends.
class FileLock {
 public:
  // Makes the file if need be. Nothing when another process holds the lock. kIo.
  static Result<std::optional<FileLock>> try_lock(const std::filesystem::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Whether this process may make files in `path`; false when it is no directory.
bool is_writable_directory(const std::filesystem::path& path);

}  // namespace sluice
