// Ctrl-C sets a flag that ends generation within a layer. Process-wide by nature; install once,
// from main's thread.
#pragma once

#include <atomic>

namespace sluice {

// Takes over SIGINT until the first one arrives; then the system's default is back: a second one
// kills.
void install_interrupt();

// Takes over SIGINT for good: each one sets the flag, and who has acted on it clears it.
void install_repeated_interrupt();

// Set by Ctrl-C, and by whoever else wants generation to end.
std::atomic<bool>& interrupt_flag();

// Forgets what came so far.
void clear_interrupt();

// A descriptor that can be read from once Ctrl-C came, until clear_interrupt(): to be waited for
// beside others, so that none is missed between a look at the flag and the wait. -1 before an
// install.
int interrupt_descriptor();

}  // namespace sluice
