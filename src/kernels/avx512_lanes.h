// The sixteen lanes of the law in one AVX-512 register: the lane type of math.h and vector.h. Only
// avx512.cpp may include it. Pure functions; thread-safe.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/math.h"

namespace sluice::avx512 {

// The first n lanes, n < 16.
SLUICE_INLINE __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }

struct I32x16 {
  __m512i v;
  SLUICE_INLINE explicit I32x16(__m512i value) : v(value) {}
  SLUICE_INLINE explicit I32x16(int32_t value) : v(_mm512_set1_epi32(value)) {}
};
SLUICE_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return I32x16(_mm512_add_epi32(a.v, b.v)); }
SLUICE_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return I32x16(_mm512_sub_epi32(a.v, b.v)); }
SLUICE_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return I32x16(_mm512_and_si512(a.v, b.v)); }
SLUICE_INLINE I32x16 operator|(I32x16 a, I32x16 b) { return I32x16(_mm512_or_si512(a.v, b.v)); }
template <unsigned n>
SLUICE_INLINE I32x16 shift_left(I32x16 a) {
  return I32x16(_mm512_slli_epi32(a.v, n));
}
template <unsigned n>
SLUICE_INLINE I32x16 shift_right(I32x16 a) {
  return I32x16(_mm512_srai_epi32(a.v, n));
}

struct F32x16 {
  using Int = I32x16;
  using Mask = __mmask16;
  // Sizes for vector*.h: of 32 registers, 24 hold sums.
  static constexpr int kRowsAlone = 8, kTileRows = 4, kTileT = 6, kPanelRows = 8, kPanelT = 3,
                       kColumnGroup = 8;
  static constexpr int64_t kFewMax = 12;  // rows of x above which unpacking to memory pays

  __m512 v;
  SLUICE_INLINE F32x16() : v(_mm512_setzero_ps()) {}
  SLUICE_INLINE explicit F32x16(__m512 value) : v(value) {}
  SLUICE_INLINE explicit F32x16(float value) : v(_mm512_set1_ps(value)) {}

  // Any alignment. The forms with n touch the first n < 16 elements; other lanes read +0.
  SLUICE_INLINE static F32x16 load(const float* p) { return F32x16(_mm512_loadu_ps(p)); }
  SLUICE_INLINE static F32x16 load(const float* p, int64_t n) {
    return F32x16(_mm512_maskz_loadu_ps(first(n), p));
  }
  // A load that is not repeated as an operand of every fma that uses it: in a panel the loads would
  // outnumber the fma.
  SLUICE_INLINE static F32x16 load_once(const float* p) {
    __m512 value = _mm512_loadu_ps(p);
    __asm__("" : "+v"(value));
    return F32x16(value);
  }
  SLUICE_INLINE static F32x16 load_once(const float* p, int64_t n) { return load(p, n); }
  SLUICE_INLINE void store(float* p) const { _mm512_storeu_ps(p, v); }
  SLUICE_INLINE void store(float* p, int64_t n) const { _mm512_mask_storeu_ps(p, first(n), v); }

  SLUICE_INLINE static F32x16 load_bf16(const std::byte* p) {
    return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  SLUICE_INLINE static F32x16 load_bf16(const std::byte* p, int64_t n) {
    return widen_bf16(_mm256_maskz_loadu_epi16(first(n), p));
  }
  SLUICE_INLINE static F32x16 load_int8(const std::byte* p) {
    return widen_int8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  SLUICE_INLINE static F32x16 load_int8(const std::byte* p, int64_t n) {
    return widen_int8(_mm_maskz_loadu_epi8(first(n), p));
  }

  // Sixteen bytes, one a lane.
  SLUICE_INLINE static I32x16 load_bytes(const std::byte* p) {
    return I32x16(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  // table[low 4 bits of each lane], where table[i + 8] is -table[i].
  SLUICE_INLINE static F32x16 lookup(const float* table, I32x16 index) {
    return F32x16(_mm512_permutexvar_ps(index.v, _mm512_loadu_ps(table)));
  }

  // lane[i] += lane[i + n] for n = 8, 4, 2, 1.
  SLUICE_INLINE float sum() const {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
  }

 private:
  SLUICE_INLINE static F32x16 widen_bf16(__m256i bits) {
    return F32x16(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)));
  }
  SLUICE_INLINE static F32x16 widen_int8(__m128i codes) {
    return F32x16(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)));
  }
};
SLUICE_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return F32x16(_mm512_add_ps(a.v, b.v)); }
SLUICE_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return F32x16(_mm512_sub_ps(a.v, b.v)); }
SLUICE_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return F32x16(_mm512_mul_ps(a.v, b.v)); }
SLUICE_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return F32x16(_mm512_div_ps(a.v, b.v)); }
SLUICE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return F32x16(_mm512_fmadd_ps(a.v, b.v, c.v));
}
SLUICE_INLINE F32x16 sqrt(F32x16 a) { return F32x16(_mm512_sqrt_ps(a.v)); }
SLUICE_INLINE __mmask16 less(F32x16 a, F32x16 b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ);
}
SLUICE_INLINE F32x16 select(__mmask16 mask, F32x16 a, F32x16 b) {
  return F32x16(_mm512_mask_blend_ps(mask, b.v, a.v));
}
SLUICE_INLINE I32x16 to_bits(F32x16 a) { return I32x16(_mm512_castps_si512(a.v)); }
SLUICE_INLINE F32x16 from_bits(I32x16 a) { return F32x16(_mm512_castsi512_ps(a.v)); }

}  // namespace sluice::avx512
