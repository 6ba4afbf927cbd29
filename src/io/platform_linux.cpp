#include "io/platform.h"

#include <cerrno>

#include <fcntl.h>

namespace sluice {

int open_uncached(const char* path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_DIRECT);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int take_room(int fd, uint64_t bytes) {
  while (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
  }
  return 0;
}

}  // namespace sluice
