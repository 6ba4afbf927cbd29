// The KDA step and a block of MLA attention over a lane type F (vector.h): FORMAT 1.6 and 1.7.
// Pure functions; thread-safe.
#pragma once

#include "base/error.h"
#include "kernels/vector.h"

namespace sluice {

// Columns of the state are independent: a group of them keeps u, delta and o in registers.
template <class F, bool kOutput>
void kda_columns(float* state, const KdaStep& step) {
  const int64_t stride = step.value_dim;
  for_columns<F>(stride, [&](int64_t c, auto group, auto... tail) SLUICE_INLINE_BODY {
    constexpr int kGroup = decltype(group)::value;
    F delta[kGroup];
    for (int64_t i = 0; i < step.key_dim; ++i) {
      float* row = state + i * stride + c;
      const F d(step.decay[i]);
      const F k(step.k[i]);
      SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) {
        const F s = F::load(row + v * kLanes, tail...) * d;
        s.store(row + v * kLanes, tail...);
        delta[v] = fma(s, k, delta[v]);
      }
    }
    SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) {
      const F value = F::load(step.v + c + v * kLanes, tail...);
      delta[v] = F(step.beta) * (value - delta[v]);
    }
    F o[kGroup];
    for (int64_t i = 0; i < step.key_dim; ++i) {
      float* row = state + i * stride + c;
      const F k(step.k[i]);
      SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) {
        const F s = fma(k, delta[v], F::load(row + v * kLanes, tail...));
        s.store(row + v * kLanes, tail...);
        if constexpr (kOutput) o[v] = fma(s, F(step.q[i]), o[v]);
      }
    }
    if constexpr (kOutput) {
      SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) o[v].store(step.o + c + v * kLanes, tail...);
    }
  });
}

template <class F>
void kda_step(float* state, const KdaStep& step) {
  if (step.q != nullptr) {
    kda_columns<F, true>(state, step);
  } else {
    kda_columns<F, false>(state, step);
  }
}

// scores[i] = dot(query, latent i) * scale for N latents, `stride` floats long and apart.
template <class F, int N>
void latent_scores(float* scores, const float* query, const float* latents, int64_t stride,
                   float scale) {
  F sum[N];
  for_lanes(stride, [&](int64_t k, auto... tail) SLUICE_INLINE_BODY {
    const F value = F::load(query + k, tail...);
    SLUICE_UNROLL for (int i = 0; i < N; ++i) {
      sum[i] = fma(value, F::load(latents + i * stride + k, tail...), sum[i]);
    }
  });
  SLUICE_UNROLL for (int i = 0; i < N; ++i) scores[i] = sum[i].sum() * scale;
}

template <class F>
void attend_block(AttentionRun& run, const float* query, float scale, const LatentBlock& block) {
  DCHECK(block.count >= 1 && block.count <= kLatentBlockMax);
  const int64_t stride = block.latent_dim;
  float e[kLatentBlockMax];  // the scores, then exp(score - max)
  int64_t p = 0;
  constexpr int kAtOnce = F::kRowsAlone;
  for (; p + kAtOnce <= block.count; p += kAtOnce) {
    latent_scores<F, kAtOnce>(e + p, query, block.latents + p * stride, stride, scale);
  }
  for (; p < block.count; ++p) {
    latent_scores<F, 1>(e + p, query, block.latents + p * stride, stride, scale);
  }

  float max = run.max;
  for (p = 0; p < block.count; ++p) max = e[p] > max ? e[p] : max;
  max = max + 0.0f;  // a maximum of zero is +0, whatever order it was found in
  for_lanes(block.count, [&](int64_t i, auto... tail) SLUICE_INLINE_BODY {
    law::exp(F::load(e + i, tail...) - F(max)).store(e + i, tail...);
  });
  const F keep = law::exp(F(run.max) - F(max));
  float keep_one[kLanes];
  keep.store(keep_one);
  run.max = max;
  run.sum = run.sum * keep_one[0];
  for (p = 0; p < block.count; ++p) run.sum = run.sum + e[p];

  for_columns<F>(block.kv_lora, [&](int64_t l, auto group, auto... tail) SLUICE_INLINE_BODY {
    constexpr int kGroup = decltype(group)::value;
    float* out = run.context + l;
    F context[kGroup];
    SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) {
      context[v] = F::load(out + v * kLanes, tail...) * keep;
    }
    for (int64_t i = 0; i < block.count; ++i) {
      const float* latent = block.latents + i * stride + l;
      SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) {
        context[v] = fma(F(e[i]), F::load(latent + v * kLanes, tail...), context[v]);
      }
    }
    SLUICE_UNROLL for (int v = 0; v < kGroup; ++v) context[v].store(out + v * kLanes, tail...);
  });
}

}  // namespace sluice
