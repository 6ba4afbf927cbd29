// The table of pure compute functions: one table per instruction set, all of one family with the
// same bits (docs/FORMAT.md part 1). Nothing here allocates, fails or synchronises. Thread-safe.
//
// Weights are borrowed bytes at any alignment: a direct read leaves them at offset % 4096.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

enum class WeightFormat : uint8_t { kBf16, kInt8, kMxfp4 };

// W[rows, cols], row-major. kMxfp4 requires cols % 32 == 0.
struct Matrix {
  WeightFormat format = WeightFormat::kBf16;
  const std::byte* data = nullptr;  // bf16 [rows, cols]; int8 [rows, cols]; codes [rows, cols / 2]
  const std::byte* scales = nullptr;  // int8: fp32 [rows]; mxfp4: E8M0 [rows, cols / 32]
  int64_t rows = 0, cols = 0;
};

// n rows of floats, `stride` floats apart.
struct ConstRows {
  const float* data = nullptr;
  int64_t n = 0, stride = 0;
  const float* row(int64_t i) const { return data + i * stride; }
};
struct Rows {
  float* data = nullptr;
  int64_t n = 0, stride = 0;
  float* row(int64_t i) const { return data + i * stride; }
  operator ConstRows() const { return {data, n, stride}; }  // NOLINT: a reader of rows
};

constexpr int64_t kLatentBlockMax = 64;   // positions of one attend_block
constexpr int64_t kKdaValueDimMax = 256;  // value_dim of one kda_step

// Attention of one head of one row, walked block by block (FORMAT 1.7).
struct AttentionRun {
  float max;       // M
  float sum;       // Z
  float* context;  // C [kv_lora]
};
struct LatentBlock {
  const float* latents;  // [count, latent_dim] contiguous
  int64_t count;         // 1..kLatentBlockMax
  int64_t kv_lora;       // the part that enters the context
  int64_t latent_dim;    // kv_lora + rope: the part that enters the score
};

// One token of one KDA head (FORMAT 1.6).
struct KdaStep {
  const float* decay;  // [key_dim]
  const float* k;      // [key_dim]
  const float* v;      // [value_dim]
  const float* q;      // [key_dim], or null: the state alone is wanted (replay)
  float* o;            // [value_dim], unused when q is null
  float beta;
  int64_t key_dim, value_dim;  // value_dim <= kKdaValueDimMax
};

struct SituBetas {
  float beta;
  float linear_beta;  // used when has_linear
  bool has_linear;
};

struct KernelTable {
  const char* name;    // "scalar", "avx2", ...: --isa, printed with every result
  const char* family;  // "fma"

  // y[t][r] = dot(W[r], x[t]) for r in [row_begin, row_end), every t. y and x do not overlap.
  // matmul_mxfp4 takes x in the order of pack_mxfp4.
  using Matmul = void (*)(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end);
  Matmul matmul_bf16, matmul_int8, matmul_mxfp4;

  // out[l] = sum over rows j in [row_begin, row_end) of q[j - row_begin] * W[j][l] (FORMAT 1.2);
  // out [cols] is overwritten. bf16 and int8.
  void (*transposed)(float* out, const Matrix& w, const float* q, int64_t row_begin,
                     int64_t row_end);

  float (*dot)(const float* a, const float* b, int64_t n);
  void (*axpy)(float* y, float a, const float* x, int64_t n);   // y = fma(a, x, y)
  void (*add)(float* y, const float* x, int64_t n);             // y = y + x
  void (*scale)(float* y, const float* x, float a, int64_t n);  // y = x * a; may alias
  void (*rms_norm)(float* y, const float* x, const float* w, int64_t n, float eps);  // may alias

  void (*sigmoid)(float* y, const float* x, int64_t n);         // may alias
  void (*mul_sigmoid)(float* y, const float* gate, int64_t n);  // y = y * sigmoid(gate)
  void (*situ_glu)(float* y, const float* g, const float* u, int64_t n,
                   SituBetas betas);                                      // y may be g
  void (*silu_glu)(float* y, const float* g, const float* u, int64_t n);  // y may be g

  // y[c] = silu(sum_j w[j * w_stride + c] * in[j][c]); taps pointers, oldest first (FORMAT 1.6).
  void (*conv_silu)(float* y, const float* const* in, const float* w, int64_t w_stride,
                    int64_t taps, int64_t n);
  // decay[i] = exp(lower_bound * sigmoid(a * (f[i] + dt_bias[i]))) / exp(-(a * softplus(..))).
  void (*kda_decay_bounded)(float* decay, const float* f, const float* dt_bias, float a,
                            float lower_bound, int64_t n);
  void (*kda_decay_softplus)(float* decay, const float* f, const float* dt_bias, float a,
                             int64_t n);
  void (*kda_step)(float* state, const KdaStep& step);  // state [key_dim, value_dim], updated

  // query [latent_dim]; `scale` multiplies each score.
  void (*attend_block)(AttentionRun& run, const float* query, float scale,
                       const LatentBlock& block);
};

// Reorders x [cols] for matmul_mxfp4: in each block of 32 the even elements, then the odd ones.
void pack_mxfp4(float* packed, const float* x, int64_t cols);

const KernelTable& scalar_table();

}  // namespace sluice
