// The ceiling of a product: how fast this core can do nothing but fma. Pure function.
#pragma once

namespace sluice {

// Does `steps` fused multiply-adds of independent registers; returns the floating-point operations
// done, or 0 where the build has no such loop for this CPU.
double fma_peak_flops(long steps);

}  // namespace sluice
