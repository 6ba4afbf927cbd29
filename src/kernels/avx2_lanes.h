// The sixteen lanes of the law in two AVX registers: the lane type of math.h and vector.h. Only
// avx2.cpp may include it. Pure functions; thread-safe.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/math.h"

namespace sluice::avx2 {

struct I32x16 {
  __m256i lo, hi;  // lanes 0-7, lanes 8-15
  SLUICE_INLINE I32x16(__m256i low, __m256i high) : lo(low), hi(high) {}
  SLUICE_INLINE explicit I32x16(int32_t value)
      : lo(_mm256_set1_epi32(value)), hi(_mm256_set1_epi32(value)) {}
};
SLUICE_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
SLUICE_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
SLUICE_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
SLUICE_INLINE I32x16 operator|(I32x16 a, I32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int n>
SLUICE_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)};
}
template <int n>
SLUICE_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)};
}

// All bits of a lane set, or none.
struct Mask {
  __m256 lo, hi;
};

// The first n lanes, n < 16.
struct First {
  __m256i lo, hi;
  SLUICE_INLINE explicit First(int64_t n) {
    const __m256i count = _mm256_set1_epi32(static_cast<int32_t>(n));
    lo = _mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    hi = _mm256_cmpgt_epi32(count, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15));
  }
};

struct F32x16 {
  using Int = I32x16;
  using Mask = avx2::Mask;
  // Sizes for vector*.h: of 16 registers, 12 at most hold sums.
  static constexpr int kRowsAlone = 4, kTileRows = 2, kTileT = 3, kPanelRows = 2, kPanelT = 2,
                       kColumnGroup = 4;
  static constexpr int64_t kFewMax = 3;  // rows of x above which unpacking to memory pays

  __m256 lo, hi;  // lanes 0-7, lanes 8-15
  SLUICE_INLINE F32x16() : lo(_mm256_setzero_ps()), hi(_mm256_setzero_ps()) {}
  SLUICE_INLINE F32x16(__m256 low, __m256 high) : lo(low), hi(high) {}
  SLUICE_INLINE explicit F32x16(float value)
      : lo(_mm256_set1_ps(value)), hi(_mm256_set1_ps(value)) {}

  // Any alignment. The forms with n touch the first n < 16 elements; other lanes read +0.
  SLUICE_INLINE static F32x16 load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  SLUICE_INLINE static F32x16 load(const float* p, int64_t n) {
    const First first(n);
    return {_mm256_maskload_ps(p, first.lo), _mm256_maskload_ps(p + 8, first.hi)};
  }
  // A load that is not repeated as an operand of every fma that uses it: in a panel the loads would
  // outnumber the fma.
  SLUICE_INLINE static F32x16 load_once(const float* p) {
    __m256 low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + 8);
    __asm__("" : "+x"(low), "+x"(high));
    return {low, high};
  }
  SLUICE_INLINE static F32x16 load_once(const float* p, int64_t n) { return load(p, n); }
  SLUICE_INLINE void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  SLUICE_INLINE void store(float* p, int64_t n) const {
    const First first(n);
    _mm256_maskstore_ps(p, first.lo, lo);
    _mm256_maskstore_ps(p + 8, first.hi, hi);
  }

  SLUICE_INLINE static F32x16 load_bf16(const std::byte* p) {
    const auto* at = reinterpret_cast<const __m128i*>(p);
    return {widen_bf16(_mm_loadu_si128(at)), widen_bf16(_mm_loadu_si128(at + 1))};
  }
  SLUICE_INLINE static F32x16 load_bf16(const std::byte* p, int64_t n) {
    alignas(16) std::byte bits[32] = {};
    std::memcpy(bits, p, static_cast<size_t>(n) * 2);
    return load_bf16(bits);
  }
  SLUICE_INLINE static F32x16 load_int8(const std::byte* p) {
    return {widen_int8(load_eight(p)), widen_int8(load_eight(p + 8))};
  }
  SLUICE_INLINE static F32x16 load_int8(const std::byte* p, int64_t n) {
    alignas(16) std::byte codes[16] = {};
    std::memcpy(codes, p, static_cast<size_t>(n));
    return load_int8(codes);
  }

  // Sixteen bytes, one a lane.
  SLUICE_INLINE static I32x16 load_bytes(const std::byte* p) {
    return {_mm256_cvtepu8_epi32(load_eight(p)), _mm256_cvtepu8_epi32(load_eight(p + 8))};
  }
  // table[low 4 bits of each lane], where table[i + 8] is -table[i].
  SLUICE_INLINE static F32x16 lookup(const float* table, I32x16 index) {
    const __m256 half = _mm256_loadu_ps(table);
    return {signed_lookup(half, index.lo), signed_lookup(half, index.hi)};
  }

  // lane[i] += lane[i + n] for n = 8, 4, 2, 1.
  SLUICE_INLINE float sum() const {
    const __m256 a = _mm256_add_ps(lo, hi);
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
  }

 private:
  SLUICE_INLINE static __m128i load_eight(const std::byte* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  SLUICE_INLINE static __m256 widen_bf16(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  SLUICE_INLINE static __m256 widen_int8(__m128i codes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  }
  // The permutation reads bits 0-2 of an index; bit 3 becomes the sign.
  SLUICE_INLINE static __m256 signed_lookup(__m256 half, __m256i index) {
    const __m256i sign =
        _mm256_and_si256(_mm256_slli_epi32(index, 28), _mm256_set1_epi32(INT32_MIN));
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(half, index), _mm256_castsi256_ps(sign));
  }
};
SLUICE_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
SLUICE_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
SLUICE_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
SLUICE_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
SLUICE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
SLUICE_INLINE F32x16 sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
SLUICE_INLINE Mask less(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
SLUICE_INLINE F32x16 select(Mask mask, F32x16 a, F32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, mask.lo), _mm256_blendv_ps(b.hi, a.hi, mask.hi)};
}
SLUICE_INLINE I32x16 to_bits(F32x16 a) {
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
SLUICE_INLINE F32x16 from_bits(I32x16 a) {
  return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}

}  // namespace sluice::avx2
