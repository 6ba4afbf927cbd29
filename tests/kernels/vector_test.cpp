// Every supported table's elementwise functions against the scalar table, bit for bit, and the
// scalar table against the formulas of FORMAT 1.3, 1.6 and 1.9.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/bits.h"
#include "kernels/dispatch.h"
#include "kernels/math.h"

namespace sluice {

namespace {

constexpr float kGuard = 12345.0f;

struct Inputs {
  int64_t n;
  std::vector<float> a, b, c, d;  // [n] each, offset by one float from the allocation's start
};

// Runs `call(table, y, inputs)` for every table, size and kind of value; y holds inputs.d at first.
void expect_tables_agree(
    const std::function<void(const KernelTable&, float* y, const Inputs&)>& call) {
  Random random(20);
  for (int64_t n = 0; n <= 131; ++n) {
    for (const bool awkward : {false, true}) {
      const auto draw = [&] { return awkward ? random.awkward(n) : random.normals(n, 3.0f); };
      const Inputs in{n, draw(), draw(), draw(), draw()};
      const auto run = [&](const KernelTable& table) {
        std::vector<float> y(1, kGuard);
        y.insert(y.end(), in.d.begin(), in.d.end());
        y.resize(y.size() + 20, kGuard);
        call(table, y.data() + 1, in);
        for (size_t i = static_cast<size_t>(n) + 1; i < y.size(); ++i) EXPECT_EQ(y[i], kGuard) << i;
        EXPECT_EQ(y[0], kGuard);
        return y;
      };
      const std::vector<float> want = run(scalar_table());
      for (const KernelTable* table : supported_tables()) {
        EXPECT_TRUE(same_bits(run(*table), want)) << table->name << " n " << n << " " << awkward;
      }
    }
  }
}

TEST(VectorFunctions, DotAgrees) {
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    if (in.n > 0) y[0] = k.dot(in.a.data(), in.b.data(), in.n);
  });
}

TEST(VectorFunctions, AxpyAddAndScaleAgree) {
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    k.axpy(y, 0.37f, in.a.data(), in.n);
    k.add(y, in.b.data(), in.n);
    k.scale(y, y, 1.7f, in.n);
  });
}

TEST(VectorFunctions, RmsNormAgrees) {
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    k.rms_norm(y, in.a.data(), in.b.data(), in.n, 1e-5f);
    k.rms_norm(y, y, in.c.data(), in.n, 1e-6f);
  });
}

TEST(VectorFunctions, SigmoidAgrees) {
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    k.sigmoid(y, in.a.data(), in.n);
    k.mul_sigmoid(y, in.b.data(), in.n);
  });
}

TEST(VectorFunctions, GatedUnitsAgree) {
  for (const bool has_linear : {false, true}) {
    expect_tables_agree([&](const KernelTable& k, float* y, const Inputs& in) {
      k.situ_glu(y, in.a.data(), in.b.data(), in.n, {4.0f, 25.0f, has_linear});
      k.situ_glu(y, y, in.c.data(), in.n, {4.0f, 25.0f, has_linear});
      k.silu_glu(y, y, in.b.data(), in.n);
    });
  }
}

TEST(VectorFunctions, ConvolutionAgrees) {
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    if (in.n < 4) return;
    const int64_t n = in.n / 4;
    const float* rows[] = {in.a.data(), in.b.data(), in.c.data(), in.a.data() + n};
    for (int64_t taps = 1; taps <= 4; ++taps) {
      k.conv_silu(y, rows, in.c.data(), n, taps, n);
      y += n;
    }
  });
}

TEST(VectorFunctions, DecayAgrees) {
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    k.kda_decay_bounded(y, in.a.data(), in.b.data(), 2.3f, -5.0f, in.n);
  });
  expect_tables_agree([](const KernelTable& k, float* y, const Inputs& in) {
    k.kda_decay_softplus(y, in.a.data(), in.b.data(), 2.3f, in.n);
  });
}

TEST(VectorFunctions, EveryBitPatternOfALatticeAgreesInAllFunctions) {
  constexpr int64_t kN = 4096;
  std::vector<float> x(kN), want(kN), got(kN);
  const std::vector<float> zero(kN, 0.0f), one(kN, 1.0f);
  for (uint32_t start = 0; start < 64; ++start) {
    for (size_t i = 0; i < kN; ++i) {
      x[i] = std::bit_cast<float>((start * uint32_t{kN} + static_cast<uint32_t>(i)) * 16381u);
    }
    for (const KernelTable* k : supported_tables()) {
      const auto expect_same = [&](const auto& call) {
        call(scalar_table(), want.data());
        call(*k, got.data());
        EXPECT_TRUE(same_bits(got, want)) << k->name;
      };
      expect_same([&](const KernelTable& t, float* y) { t.sigmoid(y, x.data(), kN); });
      expect_same([&](const KernelTable& t, float* y) {
        t.situ_glu(y, x.data(), one.data(), kN, {1.0f, 1.0f, true});
      });
      expect_same([&](const KernelTable& t, float* y) {
        t.kda_decay_softplus(y, x.data(), zero.data(), -1.0f, kN);
      });
    }
  }
}

TEST(Scalar, RmsNormIsTheFormats) {
  Random random(21);
  const std::vector<float> x = random.normals(37), w = random.normals(37);
  std::vector<float> y(37);
  scalar_table().rms_norm(y.data(), x.data(), w.data(), 37, 1e-5f);
  const float r = 1.0f / std::sqrt(scalar_table().dot(x.data(), x.data(), 37) / 37.0f + 1e-5f);
  for (size_t i = 0; i < 37; ++i) EXPECT_EQ(y[i], (x[i] * r) * w[i]);
}

TEST(Scalar, GatedUnitsAreTheFormats) {
  const float g = 3.5f, u = -700.0f;
  float y = 0.0f;
  scalar_table().situ_glu(&y, &g, &u, 1, {4.0f, 25.0f, true});
  EXPECT_EQ(y, ((4.0f * tanh_f32(g / 4.0f)) * sigmoid_f32(g)) * (25.0f * tanh_f32(u / 25.0f)));
  scalar_table().situ_glu(&y, &g, &u, 1, {4.0f, 25.0f, false});
  EXPECT_EQ(y, ((4.0f * tanh_f32(g / 4.0f)) * sigmoid_f32(g)) * u);
  scalar_table().silu_glu(&y, &g, &u, 1);
  EXPECT_EQ(y, (g * sigmoid_f32(g)) * u);
}

TEST(Scalar, ConvolutionTakesTheOldestRowFirst) {
  const float in[4] = {1.0f, 0x1p-24f, 0x1p-24f, -1.0f}, w[8] = {1, 0, 1, 0, 1, 0, 1, 0};
  const float* rows[4] = {in, in + 1, in + 2, in + 3};
  float y = 0.0f;
  scalar_table().conv_silu(&y, rows, w, 2, 4, 1);
  EXPECT_EQ(y, 0.0f);  // ((1 + 2^-24) + 2^-24) - 1 rounds to 0 in this order only
}

TEST(Scalar, DecayIsTheFormats) {
  const float f = 0.3f, bias = -1.1f;
  float d = 0.0f;
  scalar_table().kda_decay_bounded(&d, &f, &bias, 1.7f, -5.0f, 1);
  EXPECT_EQ(d, exp_f32(-5.0f * sigmoid_f32(1.7f * (f + bias))));
  scalar_table().kda_decay_softplus(&d, &f, &bias, 1.7f, 1);
  EXPECT_EQ(d, exp_f32(-(1.7f * softplus_f32(f + bias))));
}

}  // namespace

}  // namespace sluice
