// bf16 as the checkpoint stores it: the upper half of an fp32, so widening is exact. Pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice {

inline float widen_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Element `index` of bf16 values at `data`, which may have any alignment.
inline uint16_t bf16_bits_at(const std::byte* data, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, data + 2 * index, sizeof(bits));
  return bits;
}
inline float bf16_at(const std::byte* data, int64_t index) {
  return widen_bf16(bf16_bits_at(data, index));
}

}  // namespace sluice
