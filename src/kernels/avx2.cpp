// The AVX2 table: the lane type of avx2_lanes.h put through the templates of vector*.h. Compiled
// with AVX2 flags, so nothing of it but the table's address may be used before dispatch.cpp has
// asked the CPU. Pure functions; thread-safe.
#include "kernels/avx2_lanes.h"
#include "kernels/tables.h"
#include "kernels/vector_table.h"

namespace sluice {

const KernelTable* avx2_table() {
  static constexpr KernelTable kTable = vector_table<avx2::F32x16>("avx2");
  return &kTable;
}

}  // namespace sluice
