#include "app/write_file.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "io/file.h"

namespace sluice {
namespace {

Error write_error(const std::filesystem::path& path, int number) {
  return Error{Code::kIo, "cannot write " + path.string() + ": " +
                              std::generic_category().message(number) +
                              "; name a file in a directory that can be written and has room"};
}

Status write_all(const UniqueFd& fd, const std::filesystem::path& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return write_error(path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (::fsync(fd.get()) != 0) return write_error(path, errno);
  return Ok{};
}

}  // namespace

Status write_file_whole(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path part = path;
  part += ".part";
  const UniqueFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) return write_error(path, errno);
  Status written = write_all(fd, path, bytes);
  if (written.ok() && ::rename(part.c_str(), path.c_str()) != 0) written = write_error(path, errno);
  if (!written.ok()) ::unlink(part.c_str());
  return written;
}

}  // namespace sluice
