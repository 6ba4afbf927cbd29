// Matrix products of a vector table over its lane type F (vector.h): FORMAT 1.1 and 1.2.
// Pure functions; thread-safe. A tile of several rows of W by several rows of x shares the loads,
// never a sum: each (row, t) keeps its own sixteen lanes and adds in the law's order.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/mxfp4.h"
#include "kernels/vector.h"

namespace sluice {

// Asks for kBytes of weights that the next tile will read. One row of x leaves a tile's weights no
// second use, and the CPU's own prefetch starts anew in each of its short rows. No bit depends on
// it; an address past the end is ignored.
template <int kBytes>
SLUICE_INLINE void ask_for(const std::byte* p) {
  SLUICE_UNROLL for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(p + i);
}

// A format tells how weights become fp32, 16 at a time: tile() multiplies R rows of W from r by T
// rows of x from t, unpacking on the way; unpack() writes n columns of a row from k as floats in
// the order of x, padded with +0 to whole lanes; finish() applies the scale of a row, if the format
// has one. bf16 and int8 have one weight a column and share all but load(), 16 elements or the
// first n < 16.
template <class F, class Self, int64_t kBytes>
struct PlainFormat {
  template <class... Tail>
  SLUICE_INLINE static F load(const Matrix& w, int64_t r, int64_t k, Tail... tail) {
    return Self::widen(w.data + (r * w.cols + k) * kBytes, tail...);
  }

  template <int R, int T>
  static void tile(Rows y, const Matrix& w, ConstRows x, int64_t r, int64_t t) {
    const float* in = x.data + t * x.stride;
    const std::byte* next = w.data + (r + R) * w.cols * kBytes;
    F sum[R][T];
    for_lanes(w.cols, [&](int64_t k, auto... tail) SLUICE_INLINE_BODY {
      if constexpr (T == 1 && R > 1) ask_for<R * kLanes * kBytes>(next + k * R * kBytes);
      F weight[R];
      SLUICE_UNROLL for (int i = 0; i < R; ++i) weight[i] = load(w, r + i, k, tail...);
      SLUICE_UNROLL for (int j = 0; j < T; ++j) {
        const F value = F::load(in + j * x.stride + k, tail...);
        SLUICE_UNROLL for (int i = 0; i < R; ++i) sum[i][j] = fma(weight[i], value, sum[i][j]);
      }
    });
    SLUICE_UNROLL for (int j = 0; j < T; ++j) {
      float* out = y.data + (t + j) * y.stride + r;
      SLUICE_UNROLL for (int i = 0; i < R; ++i) out[i] = Self::finish(w, r + i, sum[i][j].sum());
    }
  }

  static void unpack(float* out, const Matrix& w, int64_t r, int64_t k, int64_t n) {
    for_lanes(n, [&](int64_t i, auto... tail)
                     SLUICE_INLINE_BODY { load(w, r, k + i, tail...).store(out + i); });
  }
};

template <class F>
struct Bf16 : PlainFormat<F, Bf16<F>, 2> {
  template <class... Tail>
  SLUICE_INLINE static F widen(const std::byte* p, Tail... tail) {
    return F::load_bf16(p, tail...);
  }
  SLUICE_INLINE static float finish(const Matrix&, int64_t, float dot) { return dot; }
};

template <class F>
struct Int8 : PlainFormat<F, Int8<F>, 1> {
  template <class... Tail>
  SLUICE_INLINE static F widen(const std::byte* p, Tail... tail) {
    return F::load_int8(p, tail...);
  }
  SLUICE_INLINE static float finish(const Matrix& w, int64_t r, float dot) {
    float scale;
    std::memcpy(&scale, w.scales + r * 4, sizeof(scale));
    return dot * scale;
  }
};

template <class F>
struct Mxfp4 {
  struct Block {
    F even, odd;
  };
  SLUICE_INLINE static Block load(const Matrix& w, int64_t block) {
    const float* products = kMxfp4Products[static_cast<size_t>(w.scales[block])].data();
    const auto bytes = F::load_bytes(w.data + block * kLanes);
    return {F::lookup(products, bytes), F::lookup(products, shift_right<4>(bytes))};
  }

  template <int R, int T>
  static void tile(Rows y, const Matrix& w, ConstRows x, int64_t r, int64_t t) {
    const int64_t blocks = w.cols / kMxfp4Block;
    const float* in = x.data + t * x.stride;
    const std::byte* next = w.data + (r + R) * blocks * kLanes;
    F sum[R][T];
    for (int64_t b = 0; b < blocks; ++b, in += kMxfp4Block) {
      if constexpr (T == 1 && R > 1) ask_for<R * kLanes>(next + b * R * kLanes);
      SLUICE_UNROLL for (int i = 0; i < R; ++i) {
        const Block weight = load(w, (r + i) * blocks + b);
        SLUICE_UNROLL for (int j = 0; j < T; ++j) {
          const float* at = in + j * x.stride;
          sum[i][j] = fma(weight.even, F::load(at), sum[i][j]);
          sum[i][j] = fma(weight.odd, F::load(at + kLanes), sum[i][j]);
        }
      }
    }
    SLUICE_UNROLL for (int j = 0; j < T; ++j) {
      float* out = y.data + (t + j) * y.stride + r;
      SLUICE_UNROLL for (int i = 0; i < R; ++i) out[i] = sum[i][j].sum();
    }
  }

  static void unpack(float* out, const Matrix& w, int64_t r, int64_t k, int64_t n) {
    const int64_t first = (r * w.cols + k) / kMxfp4Block;
    for (int64_t b = 0; b < n / kMxfp4Block; ++b, out += kMxfp4Block) {
      const Block weight = load(w, first + b);
      weight.even.store(out);
      weight.odd.store(out + kLanes);
    }
  }
  SLUICE_INLINE static float finish(const Matrix&, int64_t, float dot) { return dot; }
};

// Many rows of x: a panel of kRows rows of W is unpacked to floats a chunk of columns at a time,
// and every row of x passes over it. The panel stays in the first-level cache; the lanes of all
// sums rest in memory between chunks, which changes no bit of them.
template <class F, class Format>
struct Panel {
  static constexpr int kRows = F::kPanelRows, kT = F::kPanelT;
  static constexpr int64_t kChunk = 512;  // columns; a multiple of kMxfp4Block and of the lanes
  static constexpr int64_t kXRowsMax = 48;
  using Sums = float[kRows][kLanes];

  // Rows r.. of W by rows t..end of x, at most kXRowsMax.
  static void run(Rows y, const Matrix& w, ConstRows x, int64_t r, int64_t t, int64_t end) {
    alignas(64) float weights[kRows][kChunk];
    alignas(64) Sums sums[kXRowsMax];
    const int64_t n = end - t;
    for (int64_t j = 0; j < n; ++j) {
      for (int i = 0; i < kRows; ++i) F().store(sums[j][i]);
    }
    for (int64_t k = 0; k < w.cols; k += kChunk) {
      const int64_t cols = std::min(kChunk, w.cols - k);
      for (int i = 0; i < kRows; ++i) Format::unpack(weights[i], w, r + i, k, cols);
      const float* in = x.data + t * x.stride + k;
      int64_t j = 0;
      for (; j + kT <= n; j += kT) add<kT>(sums + j, weights, in + j * x.stride, x.stride, cols);
      for (; j < n; ++j) add<1>(sums + j, weights, in + j * x.stride, x.stride, cols);
    }
    for (int64_t j = 0; j < n; ++j) {
      float* out = y.data + (t + j) * y.stride + r;
      for (int i = 0; i < kRows; ++i) out[i] = Format::finish(w, r + i, F::load(sums[j][i]).sum());
    }
  }

 private:
  template <int T>
  static void add(Sums* sums, const float (*weights)[kChunk], const float* in, int64_t stride,
                  int64_t cols) {
    F sum[kRows][T];
    SLUICE_UNROLL for (int j = 0; j < T; ++j) {
      SLUICE_UNROLL for (int i = 0; i < kRows; ++i) sum[i][j] = F::load(sums[j][i]);
    }
    for_lanes(cols, [&](int64_t k, auto... tail) SLUICE_INLINE_BODY {
      F value[T];
      SLUICE_UNROLL for (int j = 0; j < T; ++j) value[j] =
          F::load_once(in + j * stride + k, tail...);
      SLUICE_UNROLL for (int i = 0; i < kRows; ++i) {
        const F weight = F::load_once(weights[i] + k);
        SLUICE_UNROLL for (int j = 0; j < T; ++j) sum[i][j] = fma(weight, value[j], sum[i][j]);
      }
    });
    SLUICE_UNROLL for (int j = 0; j < T; ++j) {
      SLUICE_UNROLL for (int i = 0; i < kRows; ++i) sum[i][j].store(sums[j][i]);
    }
  }
};

// y = W x. One row of x: F::kRowsAlone rows of W at once, enough independent sums to hide the
// latency of fma. A few: tiles of F::kTileRows by up to F::kTileT, as many sums as registers hold.
// Many: panels.
template <class F, class Format>
struct Matmul {
  static constexpr int64_t kFewMax = F::kFewMax;
  // The rows of x that pass over all of W together stay in the second-level cache.
  static constexpr int64_t kXBytesMax = 1280 * 1024;

  static void run(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end) {
    if (x.n == 1) return alone(y, w, x, row_begin, row_end);
    const int64_t x_row_bytes = std::max<int64_t>(w.cols, 1) * int64_t{sizeof(float)};
    const int64_t n_max =
        std::clamp(kXBytesMax / x_row_bytes, kFewMax, Panel<F, Format>::kXRowsMax);
    int64_t t = 0;
    for (int64_t groups = (x.n + n_max - 1) / n_max; groups > 0; --groups) {
      const int64_t end = t + (x.n - t) / groups;
      int64_t r = row_begin;
      if (end - t > kFewMax) {
        constexpr int kRows = Panel<F, Format>::kRows;
        for (; r + kRows <= row_end; r += kRows) Panel<F, Format>::run(y, w, x, r, t, end);
      }
      constexpr int kRows = F::kTileRows;
      for (; r + kRows <= row_end; r += kRows) across<kRows>(y, w, x, r, t, end);
      for (; r < row_end; ++r) across<1>(y, w, x, r, t, end);
      t = end;
    }
  }

 private:
  static void alone(Rows y, const Matrix& w, ConstRows x, int64_t r, int64_t row_end) {
    constexpr int kRows = F::kRowsAlone;
    for (; r + kRows <= row_end; r += kRows) Format::template tile<kRows, 1>(y, w, x, r, 0);
    for (; r < row_end; ++r) Format::template tile<1, 1>(y, w, x, r, 0);
  }

  // Rows t..end of x in tiles of nearly equal width.
  template <int R>
  static void across(Rows y, const Matrix& w, ConstRows x, int64_t r, int64_t t, int64_t end) {
    across<R>(std::make_integer_sequence<int, F::kTileT>(), y, w, x, r, t, end);
  }
  template <int R, int... kWidthLess1>
  static void across(std::integer_sequence<int, kWidthLess1...>, Rows y, const Matrix& w,
                     ConstRows x, int64_t r, int64_t t, int64_t end) {
    using Run = void (*)(Rows, const Matrix&, ConstRows, int64_t, int64_t);
    static constexpr Run kTiles[] = {Format::template tile<R, kWidthLess1 + 1>...};
    for (int64_t tiles = (end - t + F::kTileT - 1) / F::kTileT; tiles > 0; --tiles) {
      const int64_t width = (end - t) / tiles;
      kTiles[width - 1](y, w, x, r, t);
      t += width;
    }
  }
};

// out[l] over a group of columns stays in registers while the rows of W go by.
template <class F, class Format>
void transposed_rows(float* out, const Matrix& w, const float* q, int64_t row_begin,
                     int64_t row_end) {
  for_columns<F>(w.cols, [&](int64_t l, auto group, auto... tail) SLUICE_INLINE_BODY {
    constexpr int kGroup = decltype(group)::value;
    F sum[kGroup];
    for (int64_t j = row_begin; j < row_end; ++j) {
      const F c(Format::finish(w, j, q[j - row_begin]));
      SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) {
        sum[v] = fma(c, Format::load(w, j, l + v * kLanes, tail...), sum[v]);
      }
    }
    SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) sum[v].store(out + l + v * kLanes, tail...);
  });
}

template <class F>
void transposed(float* out, const Matrix& w, const float* q, int64_t row_begin, int64_t row_end) {
  if (w.format == WeightFormat::kInt8) {
    transposed_rows<F, Int8<F>>(out, w, q, row_begin, row_end);
  } else {
    transposed_rows<F, Bf16<F>>(out, w, q, row_begin, row_end);
  }
}

}  // namespace sluice
