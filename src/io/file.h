// Files read at offsets: whole small files, exact ranges, and direct (page-cache bypassing) reads
// of unaligned ranges into slots. A File does not change after open (but for direct()) and is
// thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/error.h"

namespace sluice {

// One owner of a file descriptor; closes it.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~UniqueFd();
  int get() const { return fd_; }

 private:
  int fd_;
};

enum class Direct { kAuto, kOff };  // kOff: --no-direct

// Bytes a slot needs so that any range of `bytes` bytes can be read directly into it: the range
// widened to page boundaries on both sides.
constexpr uint64_t slot_bytes(uint64_t bytes) { return round_up(bytes, kPageBytes) + kPageBytes; }

class File {
 public:
  // Opens for reading, direct where the file system allows it (kAuto); direct() says which it got.
  static Result<File> open(const std::filesystem::path& path, Direct direct);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // False also after the file system has refused a direct read; reads are then buffered.
  bool direct() const { return direct_works_ && direct_works_->load(); }

  // Fills all of `out` from `offset` through the page cache. Any alignment.
  // kCorrupt when the file ends before, kIo with offset and errno text otherwise.
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

  // Reads [offset, offset + bytes) into `slot` (4 KiB aligned, at least slot_bytes(bytes) long) and
  // returns the range inside the slot: its first byte lies at offset % 4096. Adds the bytes asked
  // of the system (the aligned hull) to bytes_read. Splits reads below 1 GiB each. Errors as
  // read_at.
  Result<std::span<const std::byte>> read_direct(uint64_t offset, uint64_t bytes,
                                                 std::span<std::byte> slot,
                                                 std::atomic<uint64_t>& bytes_read) const;

 private:
  // Reads whole pages from `begin` on into `hull` until its first `needed_bytes` bytes are there.
  Status read_hull(uint64_t begin, uint64_t needed_bytes, std::span<std::byte> hull) const;
  Error read_error(uint64_t offset, int number) const;

  std::string path_;
  uint64_t size_ = 0;
  UniqueFd fd_;                                      // buffered
  UniqueFd direct_fd_;                               // uncached, or -1
  std::unique_ptr<std::atomic<bool>> direct_works_;  // on the heap, so that a File can move
};

// The whole of a small file as text; kIo names the path, kBudget when it is larger than
// `bytes_max`.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t bytes_max);

}  // namespace sluice
