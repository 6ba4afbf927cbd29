// The sixteen lanes of the law in four NEON registers: the lane type of math.h and vector.h. Only
// neon.cpp may include it (aarch64). Pure functions; thread-safe.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/math.h"

namespace sluice::neon {

// Member i holds lanes 4i to 4i + 3.
struct I32x16 {
  int32x4_t q0, q1, q2, q3;
  SLUICE_INLINE I32x16(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d)
      : q0(a), q1(b), q2(c), q3(d) {}
  SLUICE_INLINE explicit I32x16(int32_t value) : q0(vdupq_n_s32(value)), q1(q0), q2(q0), q3(q0) {}
};
// All bits of a lane set, or none.
struct Mask {
  uint32x4_t q0, q1, q2, q3;
};

// {op(a.q0, b.q0), ...}: a macro, because intrinsics have no address and shifts want constants.
#define SLUICE_NEON_MAP1(op, a) \
  { op((a).q0), op((a).q1), op((a).q2), op((a).q3) }
#define SLUICE_NEON_MAP2(op, a, b) \
  { op((a).q0, (b).q0), op((a).q1, (b).q1), op((a).q2, (b).q2), op((a).q3, (b).q3) }
#define SLUICE_NEON_SHIFT(op, a, n) \
  { op((a).q0, n), op((a).q1, n), op((a).q2, n), op((a).q3, n) }

SLUICE_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return SLUICE_NEON_MAP2(vaddq_s32, a, b); }
SLUICE_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return SLUICE_NEON_MAP2(vsubq_s32, a, b); }
SLUICE_INLINE I32x16 operator&(I32x16 a, I32x16 b) { return SLUICE_NEON_MAP2(vandq_s32, a, b); }
SLUICE_INLINE I32x16 operator|(I32x16 a, I32x16 b) { return SLUICE_NEON_MAP2(vorrq_s32, a, b); }
template <int n>
SLUICE_INLINE I32x16 shift_left(I32x16 a) {
  return SLUICE_NEON_SHIFT(vshlq_n_s32, a, n);
}
template <int n>
SLUICE_INLINE I32x16 shift_right(I32x16 a) {
  return SLUICE_NEON_SHIFT(vshrq_n_s32, a, n);
}

struct F32x16 {
  using Int = I32x16;
  using Mask = neon::Mask;
  // Sizes for vector*.h: of 32 registers, 24 at most hold sums.
  static constexpr int kRowsAlone = 4, kTileRows = 2, kTileT = 3, kPanelRows = 2, kPanelT = 2,
                       kColumnGroup = 4;
  static constexpr int64_t kFewMax = 3;  // rows of x above which unpacking to memory pays

  float32x4_t q0, q1, q2, q3;
  SLUICE_INLINE F32x16() : F32x16(0.0f) {}
  SLUICE_INLINE F32x16(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
      : q0(a), q1(b), q2(c), q3(d) {}
  SLUICE_INLINE explicit F32x16(float value) : q0(vdupq_n_f32(value)), q1(q0), q2(q0), q3(q0) {}

  // Any alignment. The forms with n touch the first n < 16 elements; other lanes read +0.
  SLUICE_INLINE static F32x16 load(const float* p) {
    return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
  }
  SLUICE_INLINE static F32x16 load(const float* p, int64_t n) {
    float values[16] = {};
    std::memcpy(values, p, static_cast<size_t>(n) * sizeof(float));
    return load(values);
  }
  SLUICE_INLINE static F32x16 load_once(const float* p) { return load(p); }
  SLUICE_INLINE static F32x16 load_once(const float* p, int64_t n) { return load(p, n); }
  SLUICE_INLINE void store(float* p) const {
    vst1q_f32(p, q0);
    vst1q_f32(p + 4, q1);
    vst1q_f32(p + 8, q2);
    vst1q_f32(p + 12, q3);
  }
  SLUICE_INLINE void store(float* p, int64_t n) const {
    float values[16];
    store(values);
    std::memcpy(p, values, static_cast<size_t>(n) * sizeof(float));
  }

  SLUICE_INLINE static F32x16 load_bf16(const std::byte* p) {
    const uint16x8_t a = vreinterpretq_u16_u8(load_sixteen(p));
    const uint16x8_t b = vreinterpretq_u16_u8(load_sixteen(p + 16));
    return {widen_bf16(vget_low_u16(a)), widen_bf16(vget_high_u16(a)), widen_bf16(vget_low_u16(b)),
            widen_bf16(vget_high_u16(b))};
  }
  SLUICE_INLINE static F32x16 load_bf16(const std::byte* p, int64_t n) {
    std::byte bits[32] = {};
    std::memcpy(bits, p, static_cast<size_t>(n) * 2);
    return load_bf16(bits);
  }
  SLUICE_INLINE static F32x16 load_int8(const std::byte* p) {
    const int8x16_t codes = vreinterpretq_s8_u8(load_sixteen(p));
    const int16x8_t a = vmovl_s8(vget_low_s8(codes));
    const int16x8_t b = vmovl_s8(vget_high_s8(codes));
    return {widen_int16(vget_low_s16(a)), widen_int16(vget_high_s16(a)),
            widen_int16(vget_low_s16(b)), widen_int16(vget_high_s16(b))};
  }
  SLUICE_INLINE static F32x16 load_int8(const std::byte* p, int64_t n) {
    std::byte codes[16] = {};
    std::memcpy(codes, p, static_cast<size_t>(n));
    return load_int8(codes);
  }

  // Sixteen bytes, one a lane.
  SLUICE_INLINE static I32x16 load_bytes(const std::byte* p) {
    const uint8x16_t bytes = load_sixteen(p);
    const uint16x8_t a = vmovl_u8(vget_low_u8(bytes));
    const uint16x8_t b = vmovl_u8(vget_high_u8(bytes));
    return {widen_uint16(vget_low_u16(a)), widen_uint16(vget_high_u16(a)),
            widen_uint16(vget_low_u16(b)), widen_uint16(vget_high_u16(b))};
  }
  // table[low 4 bits of each lane], where table[i + 8] is -table[i].
  SLUICE_INLINE static F32x16 lookup(const float* table, I32x16 index) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(table);
    const uint8x16x2_t half = {{vld1q_u8(bytes), vld1q_u8(bytes + 16)}};
    return {signed_lookup(half, index.q0), signed_lookup(half, index.q1),
            signed_lookup(half, index.q2), signed_lookup(half, index.q3)};
  }

  // lane[i] += lane[i + n] for n = 8, 4, 2, 1.
  SLUICE_INLINE float sum() const {
    const float32x4_t a = vaddq_f32(vaddq_f32(q0, q2), vaddq_f32(q1, q3));
    const float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
  }

 private:
  SLUICE_INLINE static uint8x16_t load_sixteen(const std::byte* p) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  }
  SLUICE_INLINE static float32x4_t widen_bf16(uint16x4_t bits) {
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
  }
  SLUICE_INLINE static float32x4_t widen_int16(int16x4_t codes) {
    return vcvtq_f32_s32(vmovl_s16(codes));
  }
  SLUICE_INLINE static int32x4_t widen_uint16(uint16x4_t bytes) {
    return vreinterpretq_s32_u32(vmovl_u16(bytes));
  }
  // Bits 0-2 of an index name the four bytes of a float in `half`; bit 3 becomes the sign.
  SLUICE_INLINE static float32x4_t signed_lookup(uint8x16x2_t half, int32x4_t index) {
    const uint32x4_t at = vreinterpretq_u32_s32(index);
    const uint32x4_t code = vandq_u32(at, vdupq_n_u32(7));
    const uint32x4_t bytes = vmlaq_u32(vdupq_n_u32(0x03020100), code, vdupq_n_u32(0x04040404));
    const uint32x4_t value = vreinterpretq_u32_u8(vqtbl2q_u8(half, vreinterpretq_u8_u32(bytes)));
    const uint32x4_t sign = vandq_u32(vshlq_n_u32(at, 28), vdupq_n_u32(0x80000000));
    return vreinterpretq_f32_u32(veorq_u32(value, sign));
  }
};
SLUICE_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return SLUICE_NEON_MAP2(vaddq_f32, a, b); }
SLUICE_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return SLUICE_NEON_MAP2(vsubq_f32, a, b); }
SLUICE_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return SLUICE_NEON_MAP2(vmulq_f32, a, b); }
SLUICE_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return SLUICE_NEON_MAP2(vdivq_f32, a, b); }
SLUICE_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {vfmaq_f32(c.q0, a.q0, b.q0), vfmaq_f32(c.q1, a.q1, b.q1), vfmaq_f32(c.q2, a.q2, b.q2),
          vfmaq_f32(c.q3, a.q3, b.q3)};
}
SLUICE_INLINE F32x16 sqrt(F32x16 a) { return SLUICE_NEON_MAP1(vsqrtq_f32, a); }
SLUICE_INLINE Mask less(F32x16 a, F32x16 b) { return SLUICE_NEON_MAP2(vcltq_f32, a, b); }
SLUICE_INLINE F32x16 select(Mask mask, F32x16 a, F32x16 b) {
  return {vbslq_f32(mask.q0, a.q0, b.q0), vbslq_f32(mask.q1, a.q1, b.q1),
          vbslq_f32(mask.q2, a.q2, b.q2), vbslq_f32(mask.q3, a.q3, b.q3)};
}
SLUICE_INLINE I32x16 to_bits(F32x16 a) { return SLUICE_NEON_MAP1(vreinterpretq_s32_f32, a); }
SLUICE_INLINE F32x16 from_bits(I32x16 a) { return SLUICE_NEON_MAP1(vreinterpretq_f32_s32, a); }

#undef SLUICE_NEON_MAP1
#undef SLUICE_NEON_MAP2
#undef SLUICE_NEON_SHIFT

}  // namespace sluice::neon
