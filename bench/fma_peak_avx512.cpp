#include <immintrin.h>

#include "bench/fma_peak.h"

namespace sluice {

double fma_peak_flops(long steps) {
  if (!__builtin_cpu_supports("avx512f")) return 0.0;
  constexpr int kSums = 16;  // 4 cycles of latency on 2 ports need 8
  __m512 sum[kSums];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(0.5f);
  for (long i = 0; i < steps; i += kSums) {
#pragma GCC unroll 16
    for (__m512& s : sum) s = _mm512_fmadd_ps(a, a, s);
    __asm__ volatile("" : "+v"(a));  // the loop may not be simplified
  }
  for (int i = 1; i < kSums; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  __asm__ volatile("" ::"v"(sum[0]));
  return 2.0 * 16.0 * static_cast<double>(steps);
}

}  // namespace sluice
