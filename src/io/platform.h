// What the systems do differently about files; CMake picks platform_linux.cpp or, for all others
// (and with SLUICE_POSIX_ONLY), platform_posix.cpp. Functions of their arguments; thread-safe.
#pragma once

#include <cstdint>

namespace sluice {

// A descriptor of `path` opened for reading whose reads bypass the page cache when they start and
// end on pages, or -1 where the system or the file system has no such thing. `flags` are those of
// the buffered open.
int open_uncached(const char* path, int flags);

// Takes room on the drive for the first `bytes` bytes of a file: 0, or errno. Systems and file
// systems that cannot take room ahead of the writes return 0.
int take_room(int fd, uint64_t bytes);

}  // namespace sluice
