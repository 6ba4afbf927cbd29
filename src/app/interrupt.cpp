#include "app/interrupt.h"

#include <csignal>

namespace sluice {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) { g_interrupted = true; }

void install(int flags) {
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

}  // namespace sluice
