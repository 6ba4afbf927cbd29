// POSIX itself has neither uncached reads nor a portable way to take room; macOS has the first.
#include "io/platform.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace sluice {

#if defined(__APPLE__)

int open_uncached(const char* path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path, flags);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0 && ::fcntl(fd, F_NOCACHE, 1) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

#else

int open_uncached(const char*, int) { return -1; }

#endif

int take_room(int, uint64_t) { return 0; }

}  // namespace sluice
