// Stands in for avx512.cpp in builds for other architectures.
#include "kernels/tables.h"

namespace sluice {

const KernelTable* avx512_table() { return nullptr; }

}  // namespace sluice
