// Stands in for avx2.cpp in builds for other architectures.
#include "kernels/tables.h"

namespace sluice {

const KernelTable* avx2_table() { return nullptr; }

}  // namespace sluice
