// The int8 form of a bf16 row, policy "k3i8" (docs/FORMAT.md part 2). Pure function; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice {

// Fills `codes` with clamp(rne(w / s), -127, 127) of the bf16 row `row` (2 * codes.size() bytes,
// any alignment) and returns s = amax / 127 in fp32, 1 for a row of zeros. Nothing when a weight is
// infinite or NaN; `codes` is then untouched.
std::optional<float> quantise_row(std::span<const std::byte> row, std::span<int8_t> codes);

}  // namespace sluice
