#include "app/interrupt.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace sluice {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> g_interrupted = false;
std::array<int, 2> g_pipe = {-1, -1};  // what is waited for, and what the handler writes to
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  g_interrupted = true;
  const int saved = errno;
  if (::write(g_pipe[1], "", 1) < 0) {}  // full: it can be read from already
  errno = saved;
}

void open_pipe() {
  if (g_pipe[0] >= 0 || ::pipe(g_pipe.data()) != 0) return;
  for (const int end : g_pipe) {
    ::fcntl(end, F_SETFL, O_NONBLOCK);
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
  }
}

void install(int flags) {
  open_pipe();
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

void install_interrupt() { install(static_cast<int>(SA_RESETHAND | SA_RESTART)); }

void install_repeated_interrupt() { install(SA_RESTART); }

std::atomic<bool>& interrupt_flag() { return g_interrupted; }

void clear_interrupt() {
  std::array<char, 64> bytes;
  while (::read(g_pipe[0], bytes.data(), bytes.size()) > 0) {}
  g_interrupted = false;
}

int interrupt_descriptor() { return g_pipe[0]; }

}  // namespace sluice
