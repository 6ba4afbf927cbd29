// The elementwise functions and the dot product of a vector table, written once over its lane type.
// Pure functions; thread-safe.
//
// F (avx512_lanes.h is the example) is the lane type of math.h with exactly the law's 16 lanes, in
// as many registers as the instruction set needs: F() is all +0; load, store, load_bf16 and
// load_int8 of 16 elements or of the first n < 16; load_bytes, lookup, sqrt, sum() by the law's
// tree, and the sizes of tiles that fit its registers. All of a table's templates are instantiated
// in its one file: no code compiled for an instruction set may leak into shared inline functions,
// so nothing here calls inline functions on floats that other files call too (std::fma, std::sqrt).
#pragma once

#include <type_traits>

#include "kernels/kernels.h"
#include "kernels/math.h"

namespace sluice {

constexpr int64_t kLanes = 16;

// The body of a lambda that must be inlined, so that the sums it captures stay in registers; and a
// loop over a tile, unrolled for the same reason.
#define SLUICE_INLINE_BODY __attribute__((always_inline))
#define SLUICE_UNROLL _Pragma("GCC unroll 16")

// Calls part(i) for the whole groups of lanes, then part(i, n) for the n < 16 elements that are
// left.
template <class Part>
SLUICE_INLINE void for_lanes(int64_t count, Part part) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) part(i);
  if (i < count) part(i, count - i);
}

// Calls part(i, N) with N, a constant, whole groups of lanes from i on; part(i, 1, n) for what is
// left.
template <class F, class Part>
SLUICE_INLINE void for_columns(int64_t count, Part part) {
  int64_t i = 0;
  constexpr int kGroup = F::kColumnGroup;  // as many as leave registers for the operands
  for (; i + kGroup * kLanes <= count; i += kGroup * kLanes) {
    part(i, std::integral_constant<int, kGroup>());
  }
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) part(i, std::integral_constant<int, 2>());
  for (; i + kLanes <= count; i += kLanes) part(i, std::integral_constant<int, 1>());
  if (i < count) part(i, std::integral_constant<int, 1>(), count - i);
}

template <class F>
struct Vector {
  static float dot(const float* a, const float* b, int64_t n) {
    F sum;
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      sum = fma(F::load(a + i, tail...), F::load(b + i, tail...), sum);
    });
    return sum.sum();
  }

  static void axpy(float* y, float a, const float* x, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      fma(F(a), F::load(x + i, tail...), F::load(y + i, tail...)).store(y + i, tail...);
    });
  }

  static void add(float* y, const float* x, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      (F::load(y + i, tail...) + F::load(x + i, tail...)).store(y + i, tail...);
    });
  }

  static void scale(float* y, const float* x, float a, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      (F::load(x + i, tail...) * F(a)).store(y + i, tail...);
    });
  }

  static void rms_norm(float* y, const float* x, const float* w, int64_t n, float eps) {
    const F r = F(1.0f) / sqrt(F(dot(x, x, n) / static_cast<float>(n) + eps));
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      ((F::load(x + i, tail...) * r) * F::load(w + i, tail...)).store(y + i, tail...);
    });
  }

  static void sigmoid(float* y, const float* x, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      law::sigmoid(F::load(x + i, tail...)).store(y + i, tail...);
    });
  }

  static void mul_sigmoid(float* y, const float* gate, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      (F::load(y + i, tail...) * law::sigmoid(F::load(gate + i, tail...))).store(y + i, tail...);
    });
  }

  static void situ_glu(float* y, const float* g, const float* u, int64_t n, SituBetas betas) {
    const F b1(betas.beta);
    const F b2(betas.linear_beta);
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      const F gate = F::load(g + i, tail...);
      F up = F::load(u + i, tail...);
      if (betas.has_linear) up = b2 * law::tanh(up / b2);
      const F squashed = (b1 * law::tanh(gate / b1)) * law::sigmoid(gate);
      (squashed * up).store(y + i, tail...);
    });
  }

  static void silu_glu(float* y, const float* g, const float* u, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      const F gate = F::load(g + i, tail...);
      ((gate * law::sigmoid(gate)) * F::load(u + i, tail...)).store(y + i, tail...);
    });
  }

  static void conv_silu(float* y, const float* const* in, const float* w, int64_t w_stride,
                        int64_t taps, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      F sum;
      for (int64_t j = 0; j < taps; ++j) {
        sum = fma(F::load(w + j * w_stride + i, tail...), F::load(in[j] + i, tail...), sum);
      }
      (sum * law::sigmoid(sum)).store(y + i, tail...);
    });
  }

  static void kda_decay_bounded(float* decay, const float* f, const float* dt_bias, float a,
                                float lower_bound, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      const F z = F::load(f + i, tail...) + F::load(dt_bias + i, tail...);
      law::exp(F(lower_bound) * law::sigmoid(F(a) * z)).store(decay + i, tail...);
    });
  }

  static void kda_decay_softplus(float* decay, const float* f, const float* dt_bias, float a,
                                 int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
      const F z = F::load(f + i, tail...) + F::load(dt_bias + i, tail...);
      law::exp(F(-0.0f) - F(a) * law::softplus(z)).store(decay + i, tail...);
    });
  }
};

}  // namespace sluice
