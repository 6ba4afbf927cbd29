#include "io/part_file.h"

#include "base/size.h"
#include "io/platform.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

namespace fs = std::filesystem;

// Bytes of one write call, below the 2 GiB at which systems fall short.
constexpr size_t kWriteBytesMax = size_t{512} << 20;
constexpr uint64_t kStatBlockBytes = 512;  // unit of st_blocks

std::string errno_text(int number) { return std::generic_category().message(number); }

int open_fd(const fs::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

Result<PartFile> PartFile::open(const fs::path& path) {
  PartFile file;
  file.path_ = path;
  file.part_path_ = path;
  file.part_path_ += ".part";
  TRY_OK(file.make());
  struct stat info;
  if (::fstat(file.fd_.get(), &info) != 0) return file.error("examine", errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{Code::kIo, file.part_path_.string() + " is no regular file: remove it"};
  }
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

Status PartFile::make() {
  fd_ = UniqueFd(open_fd(part_path_, O_RDWR | O_CREAT));
  if (fd_.get() < 0) return error("write", errno);
  return Ok{};
}

Status PartFile::discard() {
  if (::unlink(part_path_.c_str()) != 0) return error("remove", errno);
  size_ = 0;
  return make();
}

Status PartFile::reserve(uint64_t bytes) {
  struct stat info;
  if (::fstat(fd_.get(), &info) != 0) return error("examine", errno);
  const uint64_t taken = std::min(bytes, static_cast<uint64_t>(info.st_blocks) * kStatBlockBytes);
  std::error_code failed;
  const fs::space_info space = fs::space(part_path_, failed);
  const uint64_t free = failed ? bytes : static_cast<uint64_t>(space.available);
  int number = 0;
  if (free >= bytes - taken) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) return error("extend", errno);
    number = take_room(fd_.get(), bytes);
    if (number == 0) {
      size_ = bytes;
      return Ok{};
    }
    if (number != ENOSPC && number != EDQUOT) return error("extend", number);
  }
  return Error{Code::kBudget, path_.string() + " needs " + std::to_string(bytes - taken) +
                                  " bytes (" + format_size(bytes - taken) + ") more, but only " +
                                  std::to_string(free) + " (" + format_size(free) +
                                  ") are free there: make room or name another directory with "
                                  "--work-dir"};
}

Status PartFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), std::min(bytes.size(), kWriteBytesMax),
                               static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error("write", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return Ok{};
}

Status PartFile::commit() {
  if (::fsync(fd_.get()) != 0) return error("write", errno);
  if (::rename(part_path_.c_str(), path_.c_str()) != 0) return error("rename", errno);
  const UniqueFd directory(open_fd(path_.parent_path(), O_RDONLY | O_DIRECTORY));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) return error("rename", errno);
  return Ok{};
}

Error PartFile::error(const char* action, int number) const {
  return Error{Code::kIo, std::string("cannot ") + action + " " + part_path_.string() + ": " +
                              errno_text(number) +
                              "; the directory must be writable and have room"};
}

Result<std::optional<FileLock>> FileLock::try_lock(const fs::path& path) {
  UniqueFd fd(open_fd(path, O_RDWR | O_CREAT));
  if (fd.get() < 0) {
    return Error{Code::kIo, "cannot lock " + path.string() + ": " + errno_text(errno) +
                                "; the directory must be writable"};
  }
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::optional<FileLock>();
    return Error{Code::kIo, "cannot lock " + path.string() + ": " + errno_text(errno) +
                                "; name a directory on another file system with --work-dir"};
  }
  return std::optional<FileLock>(FileLock(std::move(fd)));
}

bool is_writable_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && ::access(path.c_str(), W_OK | X_OK) == 0;
}

}  // namespace sluice
