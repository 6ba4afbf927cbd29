// What the kernel tests share: comparison by bits, seeded inputs with awkward values, and buffers
// whose edges are guarded. One owner.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/kernels.h"

namespace sluice {

// Equal bits; any NaN equals any NaN (FORMAT 1.11: payloads are outside the law).
inline bool same_bits(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

inline testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < got.size(); ++i) {
    if (!same_bits(got[i], want[i])) {
      return testing::AssertionFailure() << "element " << i << " of " << got.size() << ": got "
                                         << std::hexfloat << got[i] << ", want " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  float normal(float sigma = 1.0f) { return std::normal_distribution<float>(0.0f, sigma)(engine_); }
  uint32_t bits() { return static_cast<uint32_t>(engine_()); }
  std::vector<float> normals(int64_t n, float sigma = 1.0f) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal(sigma);
    return values;
  }
  // Normals with one element in ten awkward: NaN, infinities, zeros, subnormals, huge, tiny.
  std::vector<float> awkward(int64_t n) {
    static constexpr float kValues[] = {NAN,     INFINITY, -INFINITY, 0.0f,    -0.0f,    1e-45f,
                                        -1e-45f, 1e-39f,   -1e-39f,   3.3e38f, -3.3e38f, 1e-30f,
                                        -1e-30f, 88.8f,    -103.9f,   1e4f};
    std::vector<float> values = normals(n, 4.0f);
    for (float& v : values) {
      if (bits() % 10 == 0) v = kValues[bits() % std::size(kValues)];
    }
    return values;
  }
  // Tiny magnitudes, so that products and sums underflow to subnormals and to -0.
  std::vector<float> tiny(int64_t n) {
    std::vector<float> values = normals(n);
    for (float& v : values) v *= 0x1p-74f;
    return values;
  }

 private:
  std::mt19937 engine_;
};

// A Matrix over owned bytes that start `shift` bytes past an allocation's start and end exactly at
// its end, so that AddressSanitizer sees any read beyond the last row.
class OwnedMatrix {
 public:
  OwnedMatrix(WeightFormat format, int64_t rows, int64_t cols, size_t shift, Random& random) {
    const int64_t n = rows * cols;
    const int64_t data_bytes = format == WeightFormat::kBf16   ? 2 * n
                               : format == WeightFormat::kInt8 ? n
                                                               : n / 2;
    data_.resize(static_cast<size_t>(data_bytes) + shift);
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<std::byte>(random.bits() >> 9);
    view_ = {format, data_.data() + shift, nullptr, rows, cols};
    if (format == WeightFormat::kBf16) set_bf16(shift, n, random);
    if (format == WeightFormat::kInt8) set_int8_scales(shift, rows, random);
    if (format == WeightFormat::kMxfp4) {
      scales_.resize(static_cast<size_t>(n / 32) + shift);
      for (std::byte& scale : scales_) scale = static_cast<std::byte>(118 + random.bits() % 6);
    }
    if (!scales_.empty()) view_.scales = scales_.data() + shift;
  }
  OwnedMatrix(const OwnedMatrix&) = delete;
  OwnedMatrix& operator=(const OwnedMatrix&) = delete;

  const Matrix& view() const { return view_; }
  std::byte* data() { return data_.data() + (view_.data - data_.data()); }
  std::byte* scales() { return scales_.data() + (view_.scales - scales_.data()); }
  // Every byte random: for bf16 this holds NaN, infinities and subnormals, for MXFP4 every scale.
  void scramble(Random& random) {
    for (std::byte& b : data_) b = static_cast<std::byte>(random.bits() >> 7);
    if (view_.format != WeightFormat::kMxfp4) return;
    static constexpr int kScales[] = {0, 1, 2, 127, 252, 253, 254, 255};
    for (std::byte& b : scales_) b = static_cast<std::byte>(kScales[random.bits() % 8]);
  }

 private:
  void set_bf16(size_t shift, int64_t n, Random& random) {
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<uint16_t>(std::bit_cast<uint32_t>(random.normal(0.05f)) >> 16);
      std::memcpy(data_.data() + shift + 2 * i, &value, sizeof(value));
    }
  }
  void set_int8_scales(size_t shift, int64_t rows, Random& random) {
    scales_.resize(static_cast<size_t>(rows) * 4 + shift);
    for (int64_t r = 0; r < rows; ++r) {
      const float value = std::fabs(random.normal(0.01f));
      std::memcpy(scales_.data() + shift + 4 * r, &value, sizeof(value));
    }
  }

  std::vector<std::byte> data_, scales_;
  Matrix view_;
};

// A copy of `bytes` bytes whose end is the end of readable memory: one byte further is a crash.
class FencedCopy {
 public:
  FencedCopy(const void* source, int64_t bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto n = static_cast<size_t>(bytes);
    const size_t readable = (n + page - 1) / page * page;
    mapped_bytes_ = readable + page;
    mapping_ = static_cast<std::byte*>(
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(static_cast<void*>(mapping_), MAP_FAILED);
    EXPECT_EQ(::mprotect(mapping_ + readable, page, PROT_NONE), 0);
    data_ = mapping_ + readable - n;
    if (n > 0) std::memcpy(data_, source, n);
  }
  ~FencedCopy() { ::munmap(mapping_, mapped_bytes_); }
  FencedCopy(const FencedCopy&) = delete;
  FencedCopy& operator=(const FencedCopy&) = delete;
  const std::byte* data() const { return data_; }

 private:
  std::byte* mapping_ = nullptr;
  std::byte* data_ = nullptr;
  size_t mapped_bytes_ = 0;
};

inline KernelTable::Matmul matmul_of(const KernelTable& table, WeightFormat format) {
  return format == WeightFormat::kBf16   ? table.matmul_bf16
         : format == WeightFormat::kInt8 ? table.matmul_int8
                                         : table.matmul_mxfp4;
}

inline const char* name_of(WeightFormat format) {
  return format == WeightFormat::kBf16 ? "bf16" : format == WeightFormat::kInt8 ? "int8" : "mxfp4";
}

// Rows of x in the order that the format's matmul wants.
inline std::vector<float> packed_for(WeightFormat format, std::vector<float> x, int64_t cols) {
  if (format != WeightFormat::kMxfp4 || cols == 0) return x;
  std::vector<float> packed(x.size());
  for (size_t at = 0; at < x.size(); at += static_cast<size_t>(cols)) {
    pack_mxfp4(packed.data() + at, x.data() + at, cols);
  }
  return packed;
}

}  // namespace sluice
