// The scalar table: it defines the answer that every other table of the family must give, bit for
// bit (FORMAT part 1). Plain loops in the law's order. Pure functions; thread-safe.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "kernels/math.h"
#include "kernels/tables.h"

namespace sluice {

namespace {

void axpy(float* y, float a, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::fma(a, x[i], y[i]);
}

void add(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] + x[i];
}

void scale(float* y, const float* x, float a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * a;
}

void rms_norm(float* y, const float* x, const float* w, int64_t n, float eps) {
  const float r = 1.0f / std::sqrt(scalar_dot(x, x, n) / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] * r) * w[i];
}

void sigmoid(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = sigmoid_f32(x[i]);
}

void mul_sigmoid(float* y, const float* gate, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] * sigmoid_f32(gate[i]);
}

void situ_glu(float* y, const float* g, const float* u, int64_t n, SituBetas betas) {
  const float b1 = betas.beta;
  const float b2 = betas.linear_beta;
  for (int64_t i = 0; i < n; ++i) {
    const float gate = (b1 * tanh_f32(g[i] / b1)) * sigmoid_f32(g[i]);
    const float up = betas.has_linear ? b2 * tanh_f32(u[i] / b2) : u[i];
    y[i] = gate * up;
  }
}

void silu_glu(float* y, const float* g, const float* u, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = (g[i] * sigmoid_f32(g[i])) * u[i];
}

void conv_silu(float* y, const float* const* in, const float* w, int64_t w_stride, int64_t taps,
               int64_t n) {
  for (int64_t c = 0; c < n; ++c) {
    float sum = 0.0f;
    for (int64_t j = 0; j < taps; ++j) sum = std::fma(w[j * w_stride + c], in[j][c], sum);
    y[c] = sum * sigmoid_f32(sum);
  }
}

void kda_decay_bounded(float* decay, const float* f, const float* dt_bias, float a,
                       float lower_bound, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    decay[i] = exp_f32(lower_bound * sigmoid_f32(a * (f[i] + dt_bias[i])));
  }
}

void kda_decay_softplus(float* decay, const float* f, const float* dt_bias, float a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) decay[i] = exp_f32(-(a * softplus_f32(f[i] + dt_bias[i])));
}

void kda_step(float* state, const KdaStep& step) {
  DCHECK(step.value_dim <= kKdaValueDimMax);
  std::array<float, kKdaValueDimMax> delta{};
  for (int64_t j = 0; j < step.value_dim; ++j) {
    float u = 0.0f;
    for (int64_t i = 0; i < step.key_dim; ++i) {
      float& s = state[i * step.value_dim + j];
      s = s * step.decay[i];
      u = std::fma(s, step.k[i], u);
    }
    delta[static_cast<size_t>(j)] = step.beta * (step.v[j] - u);
  }
  for (int64_t j = 0; j < step.value_dim; ++j) {
    float o = 0.0f;
    for (int64_t i = 0; i < step.key_dim; ++i) {
      float& s = state[i * step.value_dim + j];
      s = std::fma(step.k[i], delta[static_cast<size_t>(j)], s);
      if (step.q != nullptr) o = std::fma(s, step.q[i], o);
    }
    if (step.q != nullptr) step.o[j] = o;
  }
}

void attend_block(AttentionRun& run, const float* query, float scale, const LatentBlock& block) {
  DCHECK(block.count >= 1 && block.count <= kLatentBlockMax);
  std::array<float, kLatentBlockMax> scores{};
  float max = run.max;
  for (int64_t p = 0; p < block.count; ++p) {
    const float* latent = block.latents + p * block.latent_dim;
    const float score = scalar_dot(query, latent, block.latent_dim) * scale;
    scores[static_cast<size_t>(p)] = score;
    if (score > max) max = score;
  }
  max = max + 0.0f;  // a maximum of zero is +0, whatever order it was found in
  const float keep = exp_f32(run.max - max);
  run.sum = run.sum * keep;
  for (int64_t l = 0; l < block.kv_lora; ++l) run.context[l] = run.context[l] * keep;
  for (int64_t p = 0; p < block.count; ++p) {
    const float e = exp_f32(scores[static_cast<size_t>(p)] - max);
    run.sum = run.sum + e;
    axpy(run.context, e, block.latents + p * block.latent_dim, block.kv_lora);
  }
  run.max = max;
}

}  // namespace

const KernelTable& scalar_table() {
  static constexpr KernelTable kTable = {
      .name = "scalar",
      .family = "fma",
      .matmul_bf16 = scalar_matmul_bf16,
      .matmul_int8 = scalar_matmul_int8,
      .matmul_mxfp4 = scalar_matmul_mxfp4,
      .transposed = scalar_transposed,
      .dot = scalar_dot,
      .axpy = axpy,
      .add = add,
      .scale = scale,
      .rms_norm = rms_norm,
      .sigmoid = sigmoid,
      .mul_sigmoid = mul_sigmoid,
      .situ_glu = situ_glu,
      .silu_glu = silu_glu,
      .conv_silu = conv_silu,
      .kda_decay_bounded = kda_decay_bounded,
      .kda_decay_softplus = kda_decay_softplus,
      .kda_step = kda_step,
      .attend_block = attend_block,
  };
  return kTable;
}

}  // namespace sluice
