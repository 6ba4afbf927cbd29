// Files read at offsets: whole small files, exact ranges, and direct (page-cache bypassing) reads
// of unaligned ranges into slots. A File does not change after open (but for direct()) and is
// thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
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

class File;
using FilePtr = std::unique_ptr<const File>;

// A file to read from: of the operating system (File::open), or anything that answers like one.
class File {
 public:
  // Opens a regular file, direct where its file system allows it (kAuto); direct() says which it
  // got. kIo names the path.
  static Result<FilePtr> open(const std::filesystem::path& path, Direct direct);

  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Files of one drive share its queue. The number means nothing else.
  uint64_t drive() const { return drive_; }
  // False also after the file system has refused a direct read; reads are then buffered.
  virtual bool direct() const = 0;
  // The descriptor that whole pages may be read from right now, or -1: only by read_pages.
  virtual int page_fd() const { return -1; }
  // The same bytes on several drives (mirrored_file.h), any of which a read may go to; a plain file
  // is its only copy.
  virtual size_t n_copies() const { return 1; }
  virtual const File& copy(size_t /*index*/) const { return *this; }

  // Whether the range lies within the file; else kCorrupt, as the reads give it.
  Status check_range(uint64_t offset, uint64_t bytes) const;

  // Fills all of `out` from `offset` through the page cache. Any alignment.
  // kCorrupt when the file ends before, kIo with offset and errno text otherwise.
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

  // Reads [offset, offset + bytes) into `slot` (4 KiB aligned, at least slot_bytes(bytes) long) and
  // returns the range inside the slot: its first byte lies at offset % 4096. Adds the bytes asked
  // of the system (the aligned hull) to bytes_read. Errors as read_at.
  Result<std::span<const std::byte>> read_direct(uint64_t offset, uint64_t bytes,
                                                 std::span<std::byte> slot,
                                                 std::atomic<uint64_t>& bytes_read) const;

  // Reads whole pages from `begin` (4 KiB aligned) on into `hull` until its first `needed_bytes`
  // bytes are there; `hull` may reach past the end of the file, `needed_bytes` may not (kCorrupt).
  virtual Status read_pages(uint64_t begin, uint64_t needed_bytes,
                            std::span<std::byte> hull) const = 0;

 protected:
  File(std::string path, uint64_t size, uint64_t drive)
      : path_(std::move(path)), size_(size), drive_(drive) {}
  // As read_at; the range lies within the file.
  virtual Status read_bytes(uint64_t offset, std::span<std::byte> out) const = 0;
  Error read_error(uint64_t offset, int number) const;
  Error ends_early(uint64_t file_bytes, uint64_t offset, uint64_t bytes) const;

 private:
  std::string path_;
  uint64_t size_ = 0;
  uint64_t drive_ = 0;
};

// How a checkpoint opens its shards: File::open, or an emulated drive, or a test's faulty one.
using OpenFile = std::function<Result<FilePtr>(const std::filesystem::path&, Direct)>;

// The whole of a small file as text; kIo names the path, kBudget when it is larger than
// `bytes_max`.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t bytes_max);

}  // namespace sluice
