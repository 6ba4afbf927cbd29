// The dot product as FORMAT 1.1 words it, written out a second time here, against the scalar table.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/bits.h"
#include "kernels/kernels.h"
#include "kernels/mxfp4.h"

namespace sluice {

namespace {

struct Product {
  float w, x;
};

// lanes[l] is what lane l multiplies, in order; then the tree, line by line.
float sum_lanes(const std::array<std::vector<Product>, 16>& lanes) {
  float s[16];
  for (size_t l = 0; l < 16; ++l) {
    s[l] = 0.0f;
    for (const Product& p : lanes[l]) s[l] = std::fma(p.w, p.x, s[l]);
  }
  const float a0 = s[0] + s[8], a1 = s[1] + s[9], a2 = s[2] + s[10], a3 = s[3] + s[11];
  const float a4 = s[4] + s[12], a5 = s[5] + s[13], a6 = s[6] + s[14], a7 = s[7] + s[15];
  const float b0 = a0 + a4, b1 = a1 + a5, b2 = a2 + a6, b3 = a3 + a7;
  const float c0 = b0 + b2, c1 = b1 + b3;
  return c0 + c1;
}

float dot_by_format(const std::vector<float>& w, const float* x) {
  std::array<std::vector<Product>, 16> lanes;
  for (size_t k = 0; k < w.size(); ++k) lanes[k % 16].push_back({w[k], x[k]});
  for (size_t k = w.size(); k % 16 != 0; ++k) lanes[k % 16].push_back({0.0f, 0.0f});
  return sum_lanes(lanes);
}

float mxfp4_value(int code, int e) {
  static constexpr float kMagnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float value = e == 255 ? NAN : std::ldexp(kMagnitudes[code & 7], e - 127);
  return code & 8 ? -value : value;
}

// One row of MXFP4; x in its natural order.
float mxfp4_dot_by_format(const std::byte* codes, const std::byte* scales, const float* x,
                          int64_t cols) {
  std::array<std::vector<Product>, 16> lanes;
  for (int64_t block = 0; block < cols / 32; ++block) {
    const int e = static_cast<int>(scales[block]);
    for (int64_t j = 0; j < 16; ++j) {
      const int byte = static_cast<int>(codes[block * 16 + j]);
      const float* pair = x + block * 32 + 2 * j;
      lanes[static_cast<size_t>(j)].push_back({mxfp4_value(byte & 15, e), pair[0]});
      lanes[static_cast<size_t>(j)].push_back({mxfp4_value(byte >> 4, e), pair[1]});
    }
  }
  return sum_lanes(lanes);
}

float matvec_one(const Matrix& w, const std::vector<float>& x) {
  float y = 0.0f;
  const std::vector<float> in = packed_for(w.format, x, w.cols);
  matmul_of(scalar_table(), w.format)({&y, 1, 1}, w, {in.data(), 1, w.cols}, 0, 1);
  return y;
}

TEST(Dot, OfFloatsIsTheFormats) {
  Random random(1);
  for (int64_t n = 0; n <= 70; ++n) {
    const std::vector<float> a = random.normals(n), b = random.normals(n);
    EXPECT_TRUE(same_bits(scalar_table().dot(a.data(), b.data(), n), dot_by_format(a, b.data())))
        << n;
  }
}

TEST(Dot, TailTurnsANegativeZeroPositive) {
  // The only product underflows to -0; the tail's fma in the other lanes and the tree leave it
  // there for 16 elements but the padding of a 17th group turns it into +0.
  std::vector<float> a(17, 0.0f), b(17, 1.0f);
  for (float& v : a) v = -0x1p-100f;
  for (float& v : b) v = 0x1p-100f;
  EXPECT_TRUE(same_bits(scalar_table().dot(a.data(), b.data(), 16), -0.0f));
  EXPECT_TRUE(same_bits(scalar_table().dot(a.data(), b.data(), 17), 0.0f));
}

TEST(Dot, OfBf16IsTheFormats) {
  Random random(2);
  for (int64_t cols : {1, 15, 16, 17, 64, 130, 3584}) {
    OwnedMatrix w(WeightFormat::kBf16, 1, cols, 1, random);
    const std::vector<float> x = random.normals(cols);
    std::vector<float> wide;
    for (int64_t k = 0; k < cols; ++k) {
      uint16_t bits;
      std::memcpy(&bits, w.view().data + 2 * k, 2);
      wide.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
    }
    EXPECT_TRUE(same_bits(matvec_one(w.view(), x), dot_by_format(wide, x.data()))) << cols;
  }
}

TEST(Dot, OfInt8IsTheFormats) {
  Random random(3);
  for (int64_t cols : {1, 15, 16, 17, 64, 130, 3584}) {
    OwnedMatrix w(WeightFormat::kInt8, 1, cols, 3, random);
    const std::vector<float> x = random.normals(cols);
    std::vector<float> wide;
    for (int64_t k = 0; k < cols; ++k) {
      wide.push_back(static_cast<float>(static_cast<int8_t>(w.view().data[k])));
    }
    float scale;
    std::memcpy(&scale, w.view().scales, 4);
    EXPECT_TRUE(same_bits(matvec_one(w.view(), x), dot_by_format(wide, x.data()) * scale)) << cols;
  }
}

TEST(Dot, OfMxfp4IsTheFormats) {
  Random random(4);
  for (int64_t cols : {32, 64, 96, 3584}) {
    OwnedMatrix w(WeightFormat::kMxfp4, 1, cols, 1, random);
    const std::vector<float> x = random.normals(cols);
    EXPECT_TRUE(same_bits(matvec_one(w.view(), x),
                          mxfp4_dot_by_format(w.view().data, w.view().scales, x.data(), cols)))
        << cols;
  }
}

TEST(Dot, EveryMxfp4ProductIsTheFormats) {
  for (int e = 0; e < 256; ++e) {
    for (int code = 0; code < 16; ++code) {
      EXPECT_TRUE(same_bits(kMxfp4Products[static_cast<size_t>(e)][static_cast<size_t>(code)],
                            mxfp4_value(code, e)))
          << e << " " << code;
    }
  }
}

// The first block of a real expert (spec 3): picks out one column at a time, so that swapped
// nibbles or columns cannot hide in a sum.
TEST(Dot, RealMxfp4BlockDecodesColumnByColumn) {
  static constexpr int kBytes[16] = {22,  185, 206, 35,  133, 171, 155, 162,
                                     188, 136, 11,  161, 197, 137, 153, 152};
  static constexpr float kWant[32] = {
      0.0625f,     0.0078125f,  -0.0078125f, -0.0234375f, -0.0625f,   -0.03125f,   0.0234375f,
      0.015625f,   0.046875f,   -0.0f,       -0.0234375f, -0.015625f, -0.0234375f, -0.0078125f,
      0.015625f,   -0.015625f,  -0.03125f,   -0.0234375f, -0.0f,      -0.0f,       -0.0234375f,
      0.0f,        0.0078125f,  -0.015625f,  0.046875f,   -0.03125f,  -0.0078125f, -0.0f,
      -0.0078125f, -0.0078125f, -0.0f,       -0.0078125f};
  std::byte codes[16];
  for (size_t j = 0; j < 16; ++j) codes[j] = static_cast<std::byte>(kBytes[j]);
  const std::byte scale{121};
  const Matrix w{WeightFormat::kMxfp4, codes, &scale, 1, 32};
  for (size_t k = 0; k < 32; ++k) {
    std::vector<float> x(32, 0.0f);
    x[k] = 1.0f;
    EXPECT_EQ(matvec_one(w, x), kWant[k]) << "column " << k;
  }
}

}  // namespace

}  // namespace sluice
