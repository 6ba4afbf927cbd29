// Which kernel tables this binary holds, which of them this CPU can run, and the choice of --isa.
// Pure functions; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernels/kernels.h"

namespace sluice {

// All tables of the family `fma` that this CPU runs, slowest first; scalar is always there.
std::vector<const KernelTable*> supported_tables();

// "auto" is the fastest supported one. kUnsupported names what this CPU lacks, kInvalid a name that
// is no table's.
Result<const KernelTable*> choose_table(std::string_view isa);

}  // namespace sluice
