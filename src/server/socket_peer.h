// What can be told of the other end of a socket without taking anything from it. Pure query.
#pragma once

#include <cerrno>

#include <sys/socket.h>
#include <sys/types.h>

namespace sluice {

// kHalfClosed: it will send nothing more, and may or may not read on.
enum class SocketPeer { kSilent, kSends, kHalfClosed, kGone };

inline SocketPeer look_at_peer(int fd) {
  char byte;
  const ssize_t n = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return SocketPeer::kSends;
  if (n == 0) return SocketPeer::kHalfClosed;
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return later ? SocketPeer::kSilent : SocketPeer::kGone;
}

}  // namespace sluice
