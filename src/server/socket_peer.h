// What can be told of the other end of a socket without taking any of what it sent.
#pragma once

#include <cerrno>

#include <sys/socket.h>
#include <sys/types.h>

namespace sluice {

// kHalfClosed: it will send nothing more, and may or may not read on. What it does not read any more
// comes back as an error, which is told once.
enum class SocketPeer { kSilent, kSends, kHalfClosed, kGone };

inline SocketPeer look_at_peer(int fd) {
  char byte;
  const ssize_t n = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return SocketPeer::kSends;
  if (n == 0) {
    // From here on recv says 0 for ever, also after a reset.
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? SocketPeer::kHalfClosed : SocketPeer::kGone;
  }
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return later ? SocketPeer::kSilent : SocketPeer::kGone;
}

}  // namespace sluice
