// The tables behind dispatch.h. Each instruction set is one folder-internal file that is compiled
// with its own flags; where a build has none, its *_none.cpp returns null. Thread-safe.
#pragma once

#include "kernels/kernels.h"

namespace sluice {

// Null in a build for another architecture. Safe to call, and the table's name and family to read,
// on any CPU; its functions only where dispatch.cpp found the instructions.
const KernelTable* avx2_table();
const KernelTable* avx512_table();
const KernelTable* neon_table();

// Scalar functions that fill scalar_table() (scalar_matmul.cpp).
void scalar_matmul_bf16(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end);
void scalar_matmul_int8(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end);
void scalar_matmul_mxfp4(Rows y, const Matrix& w, ConstRows x, int64_t row_begin, int64_t row_end);
void scalar_transposed(float* out, const Matrix& w, const float* q, int64_t row_begin,
                       int64_t row_end);
float scalar_dot(const float* a, const float* b, int64_t n);

}  // namespace sluice
