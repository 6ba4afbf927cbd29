// Ctrl-C: the first one sets a flag that ends generation within a layer, the second one kills.
// Process-wide by nature; install once, from main's thread.
#pragma once

#include <atomic>

namespace sluice {

// Takes over SIGINT until the first one arrives; then the system's default is back.
void install_interrupt();

// Set by the first Ctrl-C, and by whoever else wants generation to end.
std::atomic<bool>& interrupt_flag();

}  // namespace sluice
