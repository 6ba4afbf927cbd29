// Rows quantised by hand: ties, zeros, the smallest and largest weights, and those that are none.
#include "format/quantise.h"

#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

struct Quantised {
  std::optional<float> scale;
  std::vector<int> codes;
};

// `bits`: bf16 patterns.
Quantised quantise(const std::vector<uint16_t>& bits) {
  std::vector<int8_t> codes(bits.size(), 99);
  Quantised out;
  out.scale = quantise_row(std::as_bytes(std::span(bits)), codes);
  out.codes.assign(codes.begin(), codes.end());
  return out;
}

uint16_t bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  EXPECT_EQ(bits & 0xffff, 0u) << value << " is no bf16";
  return static_cast<uint16_t>(bits >> 16);
}

Quantised quantise_values(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(bf16(value));
  return quantise(bits);
}

TEST(Quantise, HalvesGoToTheEvenCode) {
  const Quantised row = quantise_values({127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.75, -0.25, -127});
  EXPECT_EQ(row.scale, 1.0f);
  EXPECT_EQ(row.codes, (std::vector<int>{127, 0, 2, 2, 0, -2, -2, 1, 0, -127}));
}

TEST(Quantise, TheScaleIsAmaxOver127InFp32) {
  const Quantised row = quantise_values({0.5, -3, 1});
  EXPECT_EQ(row.scale, 3.0f / 127.0f);
  EXPECT_EQ(row.codes, (std::vector<int>{21, -127, 42}));
}

TEST(Quantise, ARowOfZerosHasScaleOne) {
  const Quantised row = quantise({0x0000, 0x8000, 0x0000});
  EXPECT_EQ(row.scale, 1.0f);
  EXPECT_EQ(row.codes, (std::vector<int>{0, 0, 0}));
}

TEST(Quantise, TheSmallestAndLargestWeightsKeepTheirPlace) {
  EXPECT_EQ(quantise({0x0001, 0x8001}).codes, (std::vector<int>{127, -127}));  // subnormal
  EXPECT_EQ(quantise({0x7f7f, 0xff7f}).codes, (std::vector<int>{127, -127}));
}

TEST(Quantise, InfinitiesAndNaNsAreRefusedWherever) {
  for (const int bad : {0x7f80, 0xff80, 0x7fc0, 0xffff}) {
    for (size_t place = 0; place < 40; ++place) {
      std::vector<uint16_t> bits(40, 0x3f80);
      bits[place] = static_cast<uint16_t>(bad);
      EXPECT_FALSE(quantise(bits).scale) << bad << " at " << place;
    }
  }
}

}  // namespace
}  // namespace sluice
