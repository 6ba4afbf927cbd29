// The law's functions (FORMAT 1.4, 1.11), each defined once over a lane type F, so that every table
// performs the same operations in the same order. F is F32x1 here and a table's 16 lanes elsewhere.
// Pure functions; thread-safe. Only + - * / fma, comparisons and operations on bits: no libm.
//
// F offers F(float), + - * /, fma(a, b, c), less(a, b) -> F::Mask (false for NaN), select(mask, a,
// b), to_bits(F) -> F::Int and from_bits(Int). Int offers Int(int32_t), + - & |, shift_left<n> and
// shift_right<n> (arithmetic), and wraps around.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#define SLUICE_INLINE inline __attribute__((always_inline))

namespace sluice {

// One lane: the scalar table, and single values of the model (router, beta, AttnRes).
struct I32x1 {
  uint32_t v;
  SLUICE_INLINE explicit I32x1(int32_t value) : v(static_cast<uint32_t>(value)) {}
  SLUICE_INLINE explicit I32x1(uint32_t value) : v(value) {}
};
SLUICE_INLINE I32x1 operator+(I32x1 a, I32x1 b) { return I32x1(a.v + b.v); }
SLUICE_INLINE I32x1 operator-(I32x1 a, I32x1 b) { return I32x1(a.v - b.v); }
SLUICE_INLINE I32x1 operator&(I32x1 a, I32x1 b) { return I32x1(a.v & b.v); }
SLUICE_INLINE I32x1 operator|(I32x1 a, I32x1 b) { return I32x1(a.v | b.v); }
template <int n>
SLUICE_INLINE I32x1 shift_left(I32x1 a) {
  return I32x1(a.v << n);
}
template <int n>
SLUICE_INLINE I32x1 shift_right(I32x1 a) {
  return I32x1(static_cast<int32_t>(a.v) >> n);
}

struct F32x1 {
  using Int = I32x1;
  using Mask = bool;
  float v;
  SLUICE_INLINE explicit F32x1(float value) : v(value) {}
};
SLUICE_INLINE F32x1 operator+(F32x1 a, F32x1 b) { return F32x1(a.v + b.v); }
SLUICE_INLINE F32x1 operator-(F32x1 a, F32x1 b) { return F32x1(a.v - b.v); }
SLUICE_INLINE F32x1 operator*(F32x1 a, F32x1 b) { return F32x1(a.v * b.v); }
SLUICE_INLINE F32x1 operator/(F32x1 a, F32x1 b) { return F32x1(a.v / b.v); }
SLUICE_INLINE F32x1 fma(F32x1 a, F32x1 b, F32x1 c) { return F32x1(std::fma(a.v, b.v, c.v)); }
SLUICE_INLINE bool less(F32x1 a, F32x1 b) { return a.v < b.v; }
SLUICE_INLINE F32x1 select(bool mask, F32x1 a, F32x1 b) { return mask ? a : b; }
SLUICE_INLINE I32x1 to_bits(F32x1 a) { return I32x1(std::bit_cast<uint32_t>(a.v)); }
SLUICE_INLINE F32x1 from_bits(I32x1 a) { return F32x1(std::bit_cast<float>(a.v)); }

namespace law {

constexpr float kLn2High = 0x1.62e430p-1f;  // ln 2 rounded; n * kLn2High cancels exactly in fma
constexpr float kLn2Low = -0x1.05c610p-29f;

template <class F>
SLUICE_INLINE F abs(F x) {
  return from_bits(to_bits(x) & typename F::Int(0x7fffffff));
}

// |magnitude| with the sign of `sign`; magnitude >= +0.
template <class F>
SLUICE_INLINE F with_sign(F magnitude, F sign) {
  using Int = typename F::Int;
  return from_bits(to_bits(magnitude) | (to_bits(sign) & Int(INT32_MIN)));
}

// e^x = 2^n e^r, |r| <= ln(2)/2. The clamp keeps n within -150..129; 2^n is two factors, so that
// the one rounding of a subnormal result, and overflow to infinity, happen in the last product.
template <class F>
SLUICE_INLINE F exp(F x) {
  using Int = typename F::Int;
  const F magic(0x1.8p23f);  // adding it leaves the nearest integer in the low bits
  x = select(less(F(89.0f), x), F(89.0f), x);
  x = select(less(x, F(-104.0f)), F(-104.0f), x);
  const F shifted = fma(x, F(0x1.715476p+0f), magic);
  const F n = shifted - magic;
  F r = fma(n, F(-kLn2High), x);
  r = fma(n, F(-kLn2Low), r);
  F q = fma(r, F(0x1.9a8be2p-13f), F(0x1.6d5162p-10f));
  q = fma(r, q, F(0x1.1115bap-7f));
  q = fma(r, q, F(0x1.5554e4p-5f));
  q = fma(r, q, F(0x1.555552p-3f));
  q = fma(r, q, F(0.5f));
  const F y = F(1.0f) + fma(r * r, q, r);
  const Int exponent = to_bits(shifted) - to_bits(magic);
  const Int half = shift_right<1>(exponent);
  const F low = from_bits(shift_left<23>(half + Int(127)));
  const F high = from_bits(shift_left<23>((exponent - half) + Int(127)));
  return (y * low) * high;
}

// 1 / (1 + e) or e / (1 + e) with e = exp(-|x|) <= 1: both tails keep their relative precision. The
// rounding error of 1 + e is known exactly and taken back to first order.
template <class F>
SLUICE_INLINE F sigmoid(F x) {
  const F e = exp(F(-0.0f) - abs(x));
  const F numerator = select(less(x, F(0.0f)), e, F(1.0f));
  const F denominator = F(1.0f) + e;
  const F quotient = numerator / denominator;
  return fma(quotient, (denominator - F(1.0f)) - e, quotient);
}

// |x| + |x|^3 P(x^2) below 3/4, 1 - 2 / (exp(2|x|) + 1) above; then the sign of x.
template <class F>
SLUICE_INLINE F tanh(F x) {
  const F a = abs(x);
  const F z = a * a;
  F p = fma(z, F(0x1.c51e5ep-10f), F(-0x1.f4e156p-8f));
  p = fma(z, p, F(0x1.5f516ap-6f));
  p = fma(z, p, F(-0x1.b97776p-5f));
  p = fma(z, p, F(0x1.110d86p-3f));
  p = fma(z, p, F(-0x1.555548p-2f));
  const F near = fma(a * z, p, a);
  const F far = F(1.0f) - F(2.0f) / (exp(a + a) + F(1.0f));
  return with_sign(select(less(a, F(0.75f)), near, far), x);
}

// s (f^2/2 + R) with s = f / (2 + f): log(1 + f) = f - (f^2/2 - this). -1/4 <= f < 1/2.
template <class F>
SLUICE_INLINE F log_tail(F f, F half_square) {
  const F s = f / (F(2.0f) + f);
  const F z = s * s;
  F r = fma(z, F(0x1.ee0d52p-3f), F(0x1.23e464p-2f));
  r = fma(z, r, F(0x1.999bfep-2f));
  r = fma(z, r, F(0x1.555554p-1f));
  return s * fma(z, r, half_square);
}

// ln x = k ln 2 + ln m, 3/4 <= m < 3/2. log(+-0) = -inf; NaN for x < 0; inf and NaN stay.
template <class F>
SLUICE_INLINE F log(F x) {
  using Int = typename F::Int;
  const auto subnormal = less(x, F(0x1p-126f));
  const F scaled = select(subnormal, x * F(0x1p23f), x);
  const Int three_quarters(0x3f400000);
  const Int offset = to_bits(scaled) - three_quarters;
  const Int exponent = shift_right<23>(offset);
  const F m = from_bits((offset & Int(0x007fffff)) + three_quarters);
  const F magic(0x1.8p23f);
  const F k = (from_bits(to_bits(magic) + exponent) - magic) - select(subnormal, F(23.0f), F(0.0f));
  const F f = m - F(1.0f);
  const F half_square = (F(0.5f) * f) * f;
  const F tail = fma(k, F(kLn2Low), log_tail(f, half_square));
  F y = fma(k, F(kLn2High), f - (half_square - tail));
  y = select(less(x, F(INFINITY)), y, x);  // inf, NaN
  y = select(less(x, F(0.0f)), F(NAN), y);
  return select(less(abs(x), F(0x1p-149f)), F(-INFINITY), y);
}

// max(x, 0) + log(1 + e), e = exp(-|x|) in [0, 1]; log(1 + e) keeps e itself as the leading term.
template <class F>
SLUICE_INLINE F softplus(F x) {
  const F e = exp(F(-0.0f) - abs(x));
  const auto large = less(F(0.5f), e);
  const F f = select(large, fma(F(0.5f), e, F(-0.5f)), e);  // (1 + e) / 2 - 1, or (1 + e) - 1
  const F half_square = (F(0.5f) * f) * f;
  const F k = select(large, F(1.0f), F(0.0f));
  const F tail = fma(k, F(kLn2Low), log_tail(f, half_square));
  const F log1p = fma(k, F(kLn2High), f - (half_square - tail));
  return select(less(x, F(0.0f)), F(0.0f), x) + log1p;
}

}  // namespace law

// The same for one value.
SLUICE_INLINE float exp_f32(float x) { return law::exp(F32x1(x)).v; }
SLUICE_INLINE float sigmoid_f32(float x) { return law::sigmoid(F32x1(x)).v; }
SLUICE_INLINE float tanh_f32(float x) { return law::tanh(F32x1(x)).v; }
SLUICE_INLINE float log_f32(float x) { return law::log(F32x1(x)).v; }
SLUICE_INLINE float softplus_f32(float x) { return law::softplus(F32x1(x)).v; }

}  // namespace sluice
