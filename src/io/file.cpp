#include "io/file.h"

#include "io/platform.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

// Bytes of one read call: a multiple of the page, below the 2 GiB at which systems fall short.
constexpr uint64_t kReadBytesMax = uint64_t{512} << 20;

std::string errno_text(int number) { return std::generic_category().message(number); }

Error io_error(const std::string& path, std::string_view action, int number) {
  return Error{Code::kIo, "cannot " + std::string(action) + " " + path + ": " + errno_text(number)};
}

// O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

int open_fd(const char* path) {
  int fd = -1;
  do {
    fd = ::open(path, kOpenFlags);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// A second descriptor of the same file that bypasses the page cache, or none.
UniqueFd open_direct(const std::string& path, const struct stat& buffered) {
  UniqueFd fd(open_uncached(path.c_str(), kOpenFlags));
  struct stat info;
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return UniqueFd();
  // The path may have been replaced between the two opens.
  if (info.st_dev != buffered.st_dev || info.st_ino != buffered.st_ino) return UniqueFd();
  return fd;
}

// A regular file of the operating system.
class DiskFile final : public File {
 public:
  DiskFile(std::string path, const struct stat& info, UniqueFd fd, UniqueFd direct_fd)
      : File(std::move(path), static_cast<uint64_t>(info.st_size),
             static_cast<uint64_t>(info.st_dev)),
        fd_(std::move(fd)),
        direct_fd_(std::move(direct_fd)),
        direct_works_(direct_fd_.get() >= 0) {}

  // False also after the file system has refused a direct read; reads are then buffered.
  bool direct() const override { return direct_works_; }
  int page_fd() const override { return direct() ? direct_fd_.get() : fd_.get(); }
  Status read_pages(uint64_t begin, uint64_t needed_bytes,
                    std::span<std::byte> hull) const override;

 protected:
  Status read_bytes(uint64_t offset, std::span<std::byte> out) const override;

 private:
  UniqueFd fd_;         // buffered
  UniqueFd direct_fd_;  // uncached, or -1
  mutable std::atomic<bool> direct_works_;
};

Status DiskFile::read_bytes(uint64_t offset, std::span<std::byte> out) const {
  uint64_t done = 0;
  while (done < out.size()) {
    const uint64_t chunk = std::min(out.size() - done, kReadBytesMax);
    const ssize_t n =
        ::pread(fd_.get(), out.data() + done, chunk, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return read_error(offset + done, errno);
    if (n == 0) return ends_early(offset + done, offset, out.size());
    done += static_cast<uint64_t>(n);
  }
  return Ok{};
}

Status DiskFile::read_pages(uint64_t begin, uint64_t needed_bytes,
                            std::span<std::byte> hull) const {
  uint64_t done = 0;
  while (done < needed_bytes) {
    // Direct reads start on pages: the odd tail of a short read is read once more.
    const uint64_t from = round_down(done, kPageBytes);
    const uint64_t chunk = std::min(hull.size() - from, kReadBytesMax);
    const bool use_direct = direct();
    const ssize_t n = ::pread(use_direct ? direct_fd_.get() : fd_.get(), hull.data() + from, chunk,
                              static_cast<off_t>(begin + from));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && use_direct) {
      direct_works_ = false;  // the file system took O_DIRECT and refuses the reads
      continue;
    }
    if (n < 0) return read_error(begin + from, errno);
    const uint64_t reached = from + static_cast<uint64_t>(n);
    if (reached <= done) return ends_early(begin + reached, begin, needed_bytes);
    done = reached;
  }
  return Ok{};
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<FilePtr> File::open(const std::filesystem::path& path, Direct direct) {
  const std::string name = path.string();
  UniqueFd fd(open_fd(name.c_str()));
  if (fd.get() < 0) return io_error(name, "open", errno);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return io_error(name, "examine", errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{Code::kIo, "cannot read " + name + ": it is not a regular file"};
  }
  UniqueFd direct_fd = direct == Direct::kAuto ? open_direct(name, info) : UniqueFd();
  return FilePtr(std::make_unique<DiskFile>(name, info, std::move(fd), std::move(direct_fd)));
}

Status File::check_range(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return ends_early(size_, offset, bytes);
  return Ok{};
}

Status File::read_at(uint64_t offset, std::span<std::byte> out) const {
  TRY_OK(check_range(offset, out.size()));
  return read_bytes(offset, out);
}

Result<std::span<const std::byte>> File::read_direct(uint64_t offset, uint64_t bytes,
                                                     std::span<std::byte> slot,
                                                     std::atomic<uint64_t>& bytes_read) const {
  TRY_OK(check_range(offset, bytes));
  const uint64_t begin = round_down(offset, kPageBytes);
  const uint64_t lead_bytes = offset - begin;
  const uint64_t hull_bytes = bytes == 0 ? 0 : round_up(lead_bytes + bytes, kPageBytes);
  CHECK(reinterpret_cast<uintptr_t>(slot.data()) % kPageBytes == 0);
  CHECK(slot.size() >= hull_bytes);
  bytes_read += hull_bytes;
  TRY_OK(read_pages(begin, bytes == 0 ? 0 : lead_bytes + bytes, slot.first(hull_bytes)));
  return std::span<const std::byte>(slot).subspan(bytes == 0 ? 0 : lead_bytes, bytes);
}

Error File::read_error(uint64_t offset, int number) const {
  return Error{Code::kIo, "cannot read " + path_ + " at offset " + std::to_string(offset) + ": " +
                              errno_text(number)};
}

Error File::ends_early(uint64_t file_bytes, uint64_t offset, uint64_t bytes) const {
  return Error{Code::kCorrupt, path_ + " ends at byte " + std::to_string(file_bytes) + ", but " +
                                   std::to_string(bytes) + " bytes at offset " +
                                   std::to_string(offset) +
                                   " were asked for: the file is truncated, download it again"};
}

Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t bytes_max) {
  TRY(const FilePtr file, File::open(path, Direct::kOff));
  if (file->size() > bytes_max) {
    return Error{Code::kBudget, path.string() + " has " + std::to_string(file->size()) +
                                    " bytes, more than the " + std::to_string(bytes_max) +
                                    " that such a file may have"};
  }
  std::string text(file->size(), '\0');
  TRY_OK(file->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace sluice
