// The law's functions against long double: at most 2 ulp over every exponent, and special values.
#include "kernels/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iostream>

namespace sluice {

namespace {

using Wide = long double;

// Distance of `got` from `want` in units of the last place of a float of want's size.
double ulps(float got, Wide want) {
  if (std::isnan(want)) return std::isnan(got) ? 0.0 : INFINITY;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded)) return got == rounded ? 0.0 : INFINITY;
  if (!std::isfinite(got)) return INFINITY;
  int exponent = 0;
  std::frexp(want, &exponent);
  const Wide unit = std::ldexp(Wide{1}, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - want) / unit);
}

// Largest error over about 10^6 floats of either sign: all 255 exponents of numbers, and between
// `from` and `to` (where the function does its work) as many again.
double worst_ulps(const char* name, float (*function)(float), Wide (*truth)(Wide), float from,
                  float to) {
  double worst = 0.0;
  float at = 0.0f;
  const auto probe = [&](float x) {
    const double error = ulps(function(x), truth(x));
    if (!(error <= worst)) worst = error, at = x;
  };
  for (uint32_t bits = 0; bits < 0x7f800000u;
       bits += 2039) {  // a prime: every exponent's mantissas
    probe(std::bit_cast<float>(bits));
    probe(std::bit_cast<float>(bits | 0x80000000u));
  }
  constexpr int kSteps = 1'000'003;
  for (int i = 0; i <= kSteps; ++i) {
    probe(from + (to - from) * (static_cast<float>(i) / static_cast<float>(kSteps)));
  }
  std::cout << name << ": at most " << worst << " ulp, at " << std::hexfloat << at
            << std::defaultfloat << "\n";
  return worst;
}

TEST(Math, ExpIsWithinTwoUlp) {
  const auto truth = [](Wide x) { return std::exp(x); };
  EXPECT_LE(worst_ulps("exp", exp_f32, truth, -104.5f, 89.5f), 2.0);
}

TEST(Math, SigmoidIsWithinTwoUlp) {
  const auto truth = [](Wide x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  };
  EXPECT_LE(worst_ulps("sigmoid", sigmoid_f32, truth, -104.5f, 20.0f), 2.0);
}

TEST(Math, TanhIsWithinTwoUlp) {
  const auto truth = [](Wide x) { return std::tanh(x); };
  EXPECT_LE(worst_ulps("tanh", tanh_f32, truth, -10.0f, 10.0f), 2.0);
}

TEST(Math, LogIsWithinTwoUlp) {
  const auto truth = [](Wide x) { return std::log(x); };
  EXPECT_LE(worst_ulps("log", log_f32, truth, 0.25f, 4.0f), 2.0);
}

TEST(Math, SoftplusIsWithinTwoUlp) {
  const auto truth = [](Wide x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  };
  EXPECT_LE(worst_ulps("softplus", softplus_f32, truth, -104.5f, 20.0f), 2.0);
}

TEST(Math, NanStaysNan) {
  for (float (*function)(float) : {exp_f32, sigmoid_f32, tanh_f32, log_f32, softplus_f32}) {
    EXPECT_TRUE(std::isnan(function(NAN)));
    EXPECT_TRUE(std::isnan(function(-NAN)));
  }
}

TEST(Math, InfinitiesAndZerosHaveTheirLimits) {
  EXPECT_EQ(exp_f32(INFINITY), INFINITY);
  EXPECT_EQ(exp_f32(-INFINITY), 0.0f);
  EXPECT_FALSE(std::signbit(exp_f32(-INFINITY)));
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(sigmoid_f32(INFINITY), 1.0f);
  EXPECT_EQ(sigmoid_f32(-INFINITY), 0.0f);
  EXPECT_EQ(sigmoid_f32(-0.0f), 0.5f);
  EXPECT_EQ(tanh_f32(INFINITY), 1.0f);
  EXPECT_EQ(tanh_f32(-INFINITY), -1.0f);
  EXPECT_TRUE(std::signbit(tanh_f32(-0.0f)));
  EXPECT_FALSE(std::signbit(tanh_f32(0.0f)));
  EXPECT_EQ(log_f32(0.0f), -INFINITY);
  EXPECT_EQ(log_f32(-0.0f), -INFINITY);
  EXPECT_EQ(log_f32(1.0f), 0.0f);
  EXPECT_EQ(log_f32(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(log_f32(-1.0f)));
  EXPECT_TRUE(std::isnan(log_f32(-INFINITY)));
  EXPECT_EQ(softplus_f32(INFINITY), INFINITY);
  EXPECT_EQ(softplus_f32(-INFINITY), 0.0f);
}

TEST(Math, SubnormalResultsAreKept) {
  EXPECT_EQ(exp_f32(-103.0f), 0x1p-149f);
  EXPECT_GT(sigmoid_f32(-100.0f), 0.0f);
  EXPECT_EQ(tanh_f32(0x1p-149f), 0x1p-149f);
  EXPECT_EQ(tanh_f32(-0x1p-140f), -0x1p-140f);
}

}  // namespace

}  // namespace sluice
