#include "format/quantise.h"

#include "base/bf16.h"
#include "base/error.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr uint16_t kMagnitude = 0x7fff;  // a bf16 without its sign; magnitudes order as integers
constexpr uint16_t kInfinity = 0x7f80;   // and above it the NaNs
// Adding 1.5 * 2^23 to |x| < 2^22 leaves no place for a fraction: it is rounded to nearest even.
constexpr float kRound = 12582912.0f;

}  // namespace

std::optional<float> quantise_row(std::span<const std::byte> row, std::span<int8_t> codes) {
  CHECK(row.size() == 2 * codes.size());
  uint16_t largest = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    largest = std::max(
        largest,
        static_cast<uint16_t>(bf16_bits_at(row.data(), static_cast<int64_t>(i)) & kMagnitude));
  }
  if (largest >= kInfinity) return std::nullopt;
  const float scale = largest == 0 ? 1.0f : widen_bf16(largest) / 127.0f;
  for (size_t i = 0; i < codes.size(); ++i) {
    // Clamping first gives the same code: the bounds are whole numbers.
    const float code =
        std::clamp(bf16_at(row.data(), static_cast<int64_t>(i)) / scale, -127.0f, 127.0f);
    codes[i] = static_cast<int8_t>((code + kRound) - kRound);
  }
  return scale;
}

}  // namespace sluice
