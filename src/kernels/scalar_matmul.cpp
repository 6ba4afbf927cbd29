// Dot products and matrix products of the scalar table: FORMAT 1.1 and 1.2 in plain C++.
// Pure functions; thread-safe.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"
#include "kernels/mxfp4.h"
#include "kernels/tables.h"

namespace sluice {

namespace {

constexpr int64_t kLanes = 16;
using Lanes = std::array<float, kLanes>;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

float int8_at(const std::byte* data, int64_t i) {
  return static_cast<float>(static_cast<int8_t>(data[i]));
}

float sum_of_lanes(Lanes lane) {
  for (size_t n = kLanes / 2; n > 0; n /= 2) {
    for (size_t i = 0; i < n; ++i) lane[i] = lane[i] + lane[i + n];
  }
  return lane[0];
}

// The dot of n elements; weight(k) is element k as fp32.
template <class Weight>
float dot_of(Weight weight, const float* x, int64_t n) {
  Lanes lane{};
  const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  for (int64_t k = 0; k < padded; ++k) {
    const float w = k < n ? weight(k) : 0.0f;
    const float v = k < n ? x[k] : 0.0f;
    float& sum = lane[static_cast<size_t>(k % kLanes)];
    sum = std::fma(w, v, sum);
  }
  return sum_of_lanes(lane);
}

}  // namespace

float scalar_dot(const float* a, const float* b, int64_t n) {
  return dot_of([a](int64_t k) { return a[k]; }, b, n);
}

void scalar_matmul_bf16(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    const std::byte* row = w.data + 2 * r * w.cols;
    for (int64_t t = 0; t < x.n; ++t) {
      y.row(t)[r] = dot_of([row](int64_t k) { return bf16_at(row, k); }, x.row(t), w.cols);
    }
  }
}

void scalar_matmul_int8(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end) {
  for (int64_t r = row_begin; r < row_end; ++r) {
    const std::byte* row = w.data + r * w.cols;
    const float scale = load<float>(w.scales + 4 * r);
    for (int64_t t = 0; t < x.n; ++t) {
      y.row(t)[r] = dot_of([row](int64_t k) { return int8_at(row, k); }, x.row(t), w.cols) * scale;
    }
  }
}

// x is packed: in a block the even elements, then the odd ones; lane j meets element 2j, then 2j
// + 1.
void scalar_matmul_mxfp4(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end) {
  DCHECK(w.cols % kMxfp4Block == 0);
  const int64_t blocks = w.cols / kMxfp4Block;
  for (int64_t r = row_begin; r < row_end; ++r) {
    for (int64_t t = 0; t < x.n; ++t) {
      Lanes lane{};
      for (int64_t b = 0; b < blocks; ++b) {
        const std::byte* codes = w.data + (r * blocks + b) * kLanes;
        const auto e = static_cast<size_t>(w.scales[r * blocks + b]);
        const float* even = x.row(t) + b * kMxfp4Block;
        const float* odd = even + kLanes;
        for (size_t j = 0; j < kLanes; ++j) {
          const auto byte = static_cast<size_t>(codes[j]);
          lane[j] = std::fma(kMxfp4Products[e][byte & 15], even[j], lane[j]);
          lane[j] = std::fma(kMxfp4Products[e][byte >> 4], odd[j], lane[j]);
        }
      }
      y.row(t)[r] = sum_of_lanes(lane);
    }
  }
}

void scalar_transposed(float* out, const Matrix& w, const float* q, int64_t row_begin,
                       int64_t row_end) {
  std::fill_n(out, w.cols, 0.0f);
  const bool int8 = w.format == WeightFormat::kInt8;
  for (int64_t j = row_begin; j < row_end; ++j) {
    const float qj = q[j - row_begin];
    const float c = int8 ? qj * load<float>(w.scales + 4 * j) : qj;
    for (int64_t l = 0; l < w.cols; ++l) {
      const int64_t i = j * w.cols + l;
      out[l] = std::fma(c, int8 ? int8_at(w.data, i) : bf16_at(w.data, i), out[l]);
    }
  }
}

void pack_mxfp4(float* packed, const float* x, int64_t cols) {
  for (int64_t begin = 0; begin < cols; begin += kMxfp4Block) {
    for (int64_t j = 0; j < kLanes; ++j) {
      packed[begin + j] = x[begin + 2 * j];
      packed[begin + kLanes + j] = x[begin + 2 * j + 1];
    }
  }
}

}  // namespace sluice
