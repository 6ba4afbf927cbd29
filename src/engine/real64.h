// exp and log of doubles for sampling, from + - * / and bit operations only: a draw is the same on
// every machine, whatever its libm. Pure functions; thread-safe.
#pragma once

#include <bit>
#include <cstdint>

#include "base/error.h"

namespace sluice {

// ln 2 in two parts: kLn2High has 21 zero bits at its end, so n * kLn2High is exact for |n| < 2^21.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// 2^n for -1022 <= n <= 1023.
constexpr double power_of_two(int64_t n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

// e^x for x <= 0, 1 at 0: n = round(x / ln 2), r = x - n ln 2, the Taylor sum of e^r up to r^13 in
// Horner's order (|r| <= 0.35, so the rest is below 1e-17), times 2^n. +0 below -745.
constexpr double exp_nonpositive(double x) {
  DCHECK(x <= 0.0);
  if (x < -745.0) return 0.0;
  const auto n = static_cast<int64_t>(x * 0x1.71547652b82fep+0 - 0.5);  // towards zero: nearest
  const double r = (x - static_cast<double>(n) * kLn2High) - static_cast<double>(n) * kLn2Low;
  double sum = 1.0;
  for (int term = 13; term >= 1; --term) sum = 1.0 + r * sum / static_cast<double>(term);
  // In two factors: 2^n alone would not exist for subnormal results.
  return sum * power_of_two(n / 2) * power_of_two(n - n / 2);
}

// ln x for x >= 1: x = m 2^e with sqrt(1/2) <= m < sqrt(2), t = (m - 1) / (m + 1), ln m = 2 (t +
// t^3/3
// + ... + t^23/23), smallest term first (|t| <= 0.172, so the rest is below 1e-20), plus e ln 2.
constexpr double log_at_least_one(double x) {
  DCHECK(x >= 1.0);
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t e = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | (1023ull << 52));
  if (m >= 0x1.6a09e667f3bcdp+0) {
    m = m * 0.5;
    e += 1;
  }
  const double t = (m - 1.0) / (m + 1.0);
  const double square = t * t;
  double sum = 0.0;
  for (int term = 23; term >= 1; term -= 2) sum = sum * square + 1.0 / static_cast<double>(term);
  const auto exponent = static_cast<double>(e);
  return exponent * kLn2High + (exponent * kLn2Low + 2.0 * t * sum);
}

}  // namespace sluice
