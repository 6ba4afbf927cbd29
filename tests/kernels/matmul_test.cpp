// Every supported table's matrix products against the scalar table, bit for bit, over odd sizes,
// misaligned weights, ranges of rows, and values at the edges of fp32.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/bits.h"
#include "kernels/dispatch.h"
#include "kernels/kernels.h"

namespace sluice {

namespace {

constexpr float kGuard = 12345.0f;

struct Range {
  int64_t begin, end;
};

// y of `table` in a frame of guards: `pad` floats after each row.
std::vector<float> product(const KernelTable& table, const Matrix& w, const std::vector<float>& x,
                           int64_t n, Range rows) {
  const int64_t stride = w.rows + 3;
  std::vector<float> y(static_cast<size_t>(n * stride), kGuard);
  matmul_of(table, w.format)({y.data(), n, stride}, w, {x.data(), n, w.cols}, rows.begin, rows.end);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t r = 0; r < stride; ++r) {
      const bool inside = r >= rows.begin && r < rows.end;
      if (!inside) {
        EXPECT_EQ(y[static_cast<size_t>(t * stride + r)], kGuard) << t << " " << r;
      }
    }
  }
  return y;
}

void expect_same(const Matrix& w, const std::vector<float>& x, int64_t n, Range rows,
                 const std::string& what) {
  const std::vector<float> in = packed_for(w.format, x, w.cols);
  const std::vector<float> want = product(scalar_table(), w, in, n, rows);
  for (const KernelTable* table : supported_tables()) {
    EXPECT_TRUE(same_bits(product(*table, w, in, n, rows), want))
        << table->name << " " << name_of(w.format) << " rows " << w.rows << " cols " << w.cols
        << " n " << n << " [" << rows.begin << ", " << rows.end << ") " << what;
  }
}

std::vector<int64_t> widths(WeightFormat format) {
  if (format == WeightFormat::kMxfp4) return {32, 64, 96, 128, 160, 3584};
  std::vector<int64_t> cols;
  for (int64_t c = 1; c <= 70; ++c) cols.push_back(c);
  for (int64_t c : {127, 128, 129, 130, 3584}) cols.push_back(c);
  return cols;
}

class EveryFormat : public testing::TestWithParam<WeightFormat> {};
INSTANTIATE_TEST_SUITE_P(Matmul, EveryFormat,
                         testing::Values(WeightFormat::kBf16, WeightFormat::kInt8,
                                         WeightFormat::kMxfp4),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(EveryFormat, EveryTableEqualsScalarOverOddSizesAndAlignments) {
  Random random(10);
  for (int64_t cols : widths(GetParam())) {
    for (int64_t rows : {1, 3, 17}) {
      const size_t shift = cols % 2 ? 1 : 3;
      const OwnedMatrix w(GetParam(), rows, cols, shift, random);
      for (int64_t n : {1, 2, 3, 4, 5, 8, 17, 64}) {
        if (n > 8 && rows == 3) continue;
        expect_same(w.view(), random.normals(n * cols), n, {0, rows}, "normal");
      }
    }
  }
}

TEST_P(EveryFormat, RangeOfRowsTouchesOnlyItsRows) {
  Random random(11);
  const OwnedMatrix w(GetParam(), 29, 96, 1, random);
  for (int64_t n : {1, 3, 9}) {
    const std::vector<float> x = random.normals(n * 96);
    for (const Range rows : {Range{0, 0}, {0, 1}, {5, 6}, {3, 20}, {8, 16}, {13, 29}, {28, 29}}) {
      expect_same(w.view(), x, n, rows, "range");
    }
  }
}

TEST_P(EveryFormat, NanInfinityAndSubnormalsKeepTheLaw) {
  Random random(12);
  for (int64_t cols : {32, 45, 64, 71, 96, 160}) {
    if (GetParam() == WeightFormat::kMxfp4 && cols % 32 != 0) continue;
    for (int repeat = 0; repeat < 10; ++repeat) {
      OwnedMatrix w(GetParam(), 13, cols, 1, random);
      const std::vector<float> tiny = random.tiny(7 * cols);
      expect_same(w.view(), tiny, 7, {0, 13}, "tiny");
      expect_same(w.view(), random.awkward(7 * cols), 7, {0, 13}, "awkward x");
      w.scramble(random);
      expect_same(w.view(), tiny, 7, {0, 13}, "scrambled weights");
      expect_same(w.view(), random.normals(cols), 1, {0, 13}, "scrambled weights");
    }
  }
}

TEST_P(EveryFormat, NothingIsReadBeyondTheLastRow) {
  Random random(16);
  for (int64_t cols : {1, 15, 17, 32, 63, 65, 96}) {
    if (GetParam() == WeightFormat::kMxfp4 && cols % 32 != 0) continue;
    for (int64_t n : {1, 2, 5, 14}) {
      const OwnedMatrix w(GetParam(), 9, cols, 1, random);
      const std::vector<float> x = packed_for(GetParam(), random.normals(n * cols), cols);
      const bool int8 = GetParam() == WeightFormat::kInt8;
      const bool mxfp4 = GetParam() == WeightFormat::kMxfp4;
      const int64_t bytes = 9 * cols * (int8 ? 2 : mxfp4 ? 1 : 4) / 2;
      const FencedCopy data(w.view().data, bytes);
      const FencedCopy scales(w.view().scales, int8 ? 9 * 4 : mxfp4 ? 9 * cols / 32 : 0);
      const FencedCopy in(x.data(), n * cols * 4);
      const Matrix fenced{GetParam(), data.data(), scales.data(), 9, cols};
      std::vector<float> y(static_cast<size_t>(n) * 9), want(y.size());
      matmul_of(scalar_table(), GetParam())({want.data(), n, 9}, w.view(), {x.data(), n, cols}, 0,
                                            9);
      for (const KernelTable* table : supported_tables()) {
        const ConstRows rows{reinterpret_cast<const float*>(in.data()), n, cols};
        matmul_of(*table, GetParam())({y.data(), n, 9}, fenced, rows, 0, 9);
        EXPECT_TRUE(same_bits(y, want)) << table->name << " cols " << cols << " n " << n;
      }
    }
  }
}

TEST_P(EveryFormat, ARowOfXIsIndependentOfItsCompany) {
  Random random(13);
  const OwnedMatrix w(GetParam(), 11, 224, 3, random);
  const std::vector<float> x = packed_for(GetParam(), random.normals(13 * 224), 224);
  for (const KernelTable* table : supported_tables()) {
    const std::vector<float> together = product(*table, w.view(), x, 13, {0, 11});
    for (size_t t = 0; t < 13; ++t) {
      const std::vector<float> one(x.begin() + static_cast<int64_t>(t) * 224,
                                   x.begin() + static_cast<int64_t>(t + 1) * 224);
      const std::vector<float> alone = product(*table, w.view(), one, 1, {0, 11});
      EXPECT_TRUE(same_bits(std::span(together).subspan(t * 14, 14), alone)) << table->name;
    }
  }
}

TEST(Matmul, TailOfZerosTurnsNegativeZeroPositiveInEveryTable) {
  // bf16 -2^-100 times 2^-100 underflows to -0 in all lanes; 17 columns add the tail's +0.
  std::vector<std::byte> weights(34);
  for (size_t i = 0; i < 34; i += 2) weights[i] = std::byte{0x80}, weights[i + 1] = std::byte{0x8d};
  const std::vector<float> x(17, 0x1p-100f);
  for (int64_t cols : {16, 17}) {
    const Matrix w{WeightFormat::kBf16, weights.data(), nullptr, 1, cols};
    expect_same(w, std::vector<float>(x.begin(), x.begin() + cols), 1, {0, 1}, "negative zero");
  }
}

TEST(Transposed, EveryTableEqualsScalar) {
  Random random(14);
  for (WeightFormat format : {WeightFormat::kBf16, WeightFormat::kInt8}) {
    for (int64_t cols : {1, 7, 16, 31, 33, 64, 128, 200, 512}) {
      OwnedMatrix w(format, 9, cols, 1, random);
      for (const bool scrambled : {false, true}) {
        if (scrambled) w.scramble(random);
        const std::vector<float> q = scrambled ? random.awkward(9) : random.normals(9);
        for (const Range rows : {Range{0, 9}, {2, 7}, {4, 4}}) {
          std::vector<float> want(static_cast<size_t>(cols) + 3, kGuard);
          scalar_table().transposed(want.data(), w.view(), q.data(), rows.begin, rows.end);
          EXPECT_EQ(want[static_cast<size_t>(cols)], kGuard);
          for (const KernelTable* table : supported_tables()) {
            std::vector<float> got(want.size(), kGuard);
            table->transposed(got.data(), w.view(), q.data(), rows.begin, rows.end);
            EXPECT_TRUE(same_bits(got, want)) << table->name << " " << cols;
          }
        }
      }
    }
  }
}

TEST(Transposed, IsTheSumOverRisingRows) {
  Random random(15);
  const OwnedMatrix w(WeightFormat::kInt8, 6, 5, 1, random);
  const std::vector<float> q = random.normals(3);
  std::vector<float> got(5), want(5, 0.0f);
  scalar_table().transposed(got.data(), w.view(), q.data(), 2, 5);
  for (size_t j = 2; j < 5; ++j) {
    float scale;
    std::memcpy(&scale, w.view().scales + 4 * j, 4);
    const float c = q[j - 2] * scale;
    for (size_t l = 0; l < 5; ++l) {
      const auto code = static_cast<int8_t>(w.view().data[j * 5 + l]);
      want[l] = std::fma(c, static_cast<float>(code), want[l]);
    }
  }
  EXPECT_TRUE(same_bits(got, want));
}

}  // namespace

}  // namespace sluice
