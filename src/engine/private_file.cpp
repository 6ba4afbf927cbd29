#include "engine/private_file.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartSuffix = ".part";
// Bytes of one write call, below the 2 GiB at which systems fall short.
constexpr size_t kWriteBytesMax = size_t{512} << 20;
constexpr auto kStaleAge = std::chrono::hours(1);

Error cannot_write(const fs::path& path, int number) {
  return Error{Code::kIo, "cannot write " + path.string() + ": " +
                              std::generic_category().message(number) +
                              "; name a directory that can be written and has room"};
}

}  // namespace

Result<PrivateFile> PrivateFile::create(const fs::path& path) {
  std::string part = path.string() + ".XXXXXX" + std::string(kPartSuffix);
  UniqueFd fd(::mkostemps(part.data(), static_cast<int>(kPartSuffix.size()), O_CLOEXEC));
  if (fd.get() < 0) return cannot_write(path, errno);
  return PrivateFile(path, std::move(part), std::move(fd));
}

PrivateFile::~PrivateFile() {
  if (!part_.empty()) ::unlink(part_.c_str());
}

Status PrivateFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), kWriteBytesMax));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    bytes_written_ += static_cast<uint64_t>(n);
  }
  return Ok{};
}

Status PrivateFile::commit() {
  if (::fsync(fd_.get()) != 0) return error(errno);
  if (::rename(part_.c_str(), path_.c_str()) != 0) return error(errno);
  part_.clear();
  const fs::path parent = path_.parent_path();
  const UniqueFd directory(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) return error(errno);
  return Ok{};
}

Error PrivateFile::error(int number) const { return cannot_write(path_, number); }

Status make_private_directory(const fs::path& path) {
  std::error_code failed;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failed);
  if (!failed && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    failed = std::error_code(errno, std::generic_category());
  }
  if (!failed && !fs::is_directory(path, failed) && !failed) {
    failed = std::make_error_code(std::errc::not_a_directory);
  }
  if (!failed) return Ok{};
  return Error{Code::kIo, "cannot make the directory " + path.string() + ": " + failed.message() +
                              "; name another place"};
}

void remove_stale_parts(const fs::path& directory) {
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() != kPartSuffix) continue;
    const auto written = entry.last_write_time(ignored);
    if (!ignored && now - written > kStaleAge) fs::remove(entry.path(), ignored);
  }
}

}  // namespace sluice
