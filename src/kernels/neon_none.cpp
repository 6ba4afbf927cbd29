// Stands in for neon.cpp in builds for other architectures.
#include "kernels/tables.h"

namespace sluice {

const KernelTable* neon_table() { return nullptr; }

}  // namespace sluice
