// The NEON table: the lane type of neon_lanes.h put through the templates of vector*.h. Every
// aarch64 CPU has it. Pure functions; thread-safe.
#include "kernels/neon_lanes.h"
#include "kernels/tables.h"
#include "kernels/vector_table.h"

namespace sluice {

const KernelTable* neon_table() {
  static constexpr KernelTable kTable = vector_table<neon::F32x16>("neon");
  return &kTable;
}

}  // namespace sluice
