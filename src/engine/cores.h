// How many threads compute best: one for each physical core that this process may run on, since two
// hyper-threads of a core share its FMA units. Pure query; thread-safe.
#pragma once

#include <string_view>
#include <vector>

namespace sluice {

// At least 1. Where the system does not tell (no /proc or /sys), every hardware thread counts.
int physical_cores();

// The numbers of a kernel list such as "0-3,8": 0 1 2 3 8. Nothing for text of another form.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace sluice
