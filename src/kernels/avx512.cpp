// The AVX-512 table: the lane type of avx512_lanes.h put through the templates of vector*.h.
// Compiled with AVX-512 flags, so nothing of it but the table's address may be used before
// dispatch.cpp has asked the CPU. Pure functions; thread-safe.
#include "kernels/avx512_lanes.h"
#include "kernels/tables.h"
#include "kernels/vector_table.h"

namespace sluice {

const KernelTable* avx512_table() {
  static constexpr KernelTable kTable = vector_table<avx512::F32x16>("avx512");
  return &kTable;
}

}  // namespace sluice
