// Constants of MXFP4 (FORMAT 1.1): every product code x scale, exact wherever fp32 can hold it.
// Data only, computed by the compiler.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice {

constexpr int64_t kMxfp4Block = 32;  // columns that share a scale; 16 bytes of codes

namespace mxfp4_detail {

// Code 0..15 times 2^(e - 127). In double the product is exact; fp32 holds it, or it is infinite.
constexpr float product(int code, int e) {
  constexpr std::array<int, 8> kHalves = {0, 1, 2, 3, 4, 6, 8, 12};
  if (e == 255) return std::numeric_limits<float>::quiet_NaN();
  const auto exponent = static_cast<uint64_t>(e - 128 + 1023);
  const double magnitude =
      kHalves[static_cast<size_t>(code & 7)] * std::bit_cast<double>(exponent << 52);
  const float value =
      magnitude < 0x1p128 ? static_cast<float>(magnitude) : std::numeric_limits<float>::infinity();
  return code & 8 ? -value : value;
}

constexpr auto make_products() {
  std::array<std::array<float, 16>, 256> products{};
  for (int e = 0; e < 256; ++e) {
    for (int code = 0; code < 16; ++code) {
      products[static_cast<size_t>(e)][static_cast<size_t>(code)] = product(code, e);
    }
  }
  return products;
}

}  // namespace mxfp4_detail

// [scale byte][code]; a row is one cache line, and real checkpoints use a handful of rows.
alignas(64) inline constexpr auto kMxfp4Products = mxfp4_detail::make_products();

}  // namespace sluice
