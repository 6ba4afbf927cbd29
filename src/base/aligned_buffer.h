// Owners of large memory: bytes aligned for direct reads, and floats aligned for kernels.
// Move-only values; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/error.h"

namespace sluice {

// Alignment of direct reads (offset, length, memory): the largest logical block in use.
constexpr uint64_t kPageBytes = 4096;

constexpr uint64_t round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// `bytes` of memory aligned to 4 KiB, uninitialised. Aborts when the system has none: every large
// buffer comes out of the memory plan, which was checked before.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(uint64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    data_ = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, round_up(bytes, kPageBytes)));
    CHECK(data_ != nullptr);
  }
  AlignedBuffer(AlignedBuffer&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  std::byte* data() const { return data_; }
  uint64_t size() const { return bytes_; }
  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// `count` floats aligned to 4 KiB, zero-filled: kernels may read any of them.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(int64_t count)
      : buffer_(static_cast<uint64_t>(count) * sizeof(float)), count_(count) {
    for (float& v : span()) v = 0.0f;
  }

  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }
  int64_t size() const { return count_; }
  std::span<float> span() const { return {data(), static_cast<size_t>(count_)}; }
  uint64_t bytes() const { return buffer_.size(); }

 private:
  AlignedBuffer buffer_;
  int64_t count_ = 0;
};

}  // namespace sluice
