// The whole table of an instruction set from its lane type F (vector.h).
#pragma once

#include "kernels/kernels.h"
#include "kernels/vector.h"
#include "kernels/vector_attention.h"
#include "kernels/vector_matmul.h"

namespace sluice {

template <class F>
constexpr KernelTable vector_table(const char* name) {
  return {
      .name = name,
      .family = "fma",
      .matmul_bf16 = Matmul<F, Bf16<F>>::run,
      .matmul_int8 = Matmul<F, Int8<F>>::run,
      .matmul_mxfp4 = Matmul<F, Mxfp4<F>>::run,
      .transposed = transposed<F>,
      .dot = Vector<F>::dot,
      .axpy = Vector<F>::axpy,
      .add = Vector<F>::add,
      .scale = Vector<F>::scale,
      .rms_norm = Vector<F>::rms_norm,
      .sigmoid = Vector<F>::sigmoid,
      .mul_sigmoid = Vector<F>::mul_sigmoid,
      .situ_glu = Vector<F>::situ_glu,
      .silu_glu = Vector<F>::silu_glu,
      .conv_silu = Vector<F>::conv_silu,
      .kda_decay_bounded = Vector<F>::kda_decay_bounded,
      .kda_decay_softplus = Vector<F>::kda_decay_softplus,
      .kda_step = kda_step<F>,
      .attend_block = attend_block<F>,
  };
}

}  // namespace sluice
