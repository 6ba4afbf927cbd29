// A file that only its owner may read (mode 0600) and that appears whole or not at all: written
// under a name of its own beside the final one, flushed, renamed. Several writers of one path do
// not disturb each other; the last rename stays. One owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"
#include "io/file.h"

namespace sluice {

class PrivateFile {
 public:
  // Makes "<path>.XXXXXX.part". kIo names the path.
  static Result<PrivateFile> create(const std::filesystem::path& path);
  PrivateFile(PrivateFile&&) = default;
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile();  // removes what was not committed

  Status write(std::span<const std::byte> bytes);
  uint64_t bytes_written() const { return bytes_written_; }
  // The bytes reach the drive, then the file gets its name, then the name reaches the drive.
  Status commit();

 private:
  PrivateFile(std::filesystem::path path, std::string part, UniqueFd fd)
      : path_(std::move(path)), part_(std::move(part)), fd_(std::move(fd)) {}
  Error error(int number) const;

  std::filesystem::path path_;
  std::string part_;  // empty after commit()
  UniqueFd fd_;
  uint64_t bytes_written_ = 0;
};

// A directory that only its owner may enter (mode 0700), with its parents; one that exists is left
// as it is. kIo names the path.
Status make_private_directory(const std::filesystem::path& path);

// Removes ".part" files of `directory` that nobody has written for an hour: their writers are gone.
void remove_stale_parts(const std::filesystem::path& directory);

}  // namespace sluice
