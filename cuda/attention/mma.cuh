// Tensor-core instructions of compute capability 8.0 and what feeds them.
//
//   ldmatrix_x4(r, row)          four 8 x 8 matrices of 16-bit elements from shared memory; lane l
//                                gives the address of row l % 8 of matrix l / 8. Register m of lane
//                                l gets elements 2 (l % 4) and + 1 of row l / 4 of matrix m.
//   ldmatrix_x4_transposed       the same of the transposed matrices
//   mma<A>(c, a, b0, b1)         c[16 x 8] += a[16 x 16] b[16 x 8], products of A (bfloat16 or
//                                float16), float sums. With g = lane / 4, t = lane % 4, the
//                                registers of a lane hold c: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g
//                                + 8, 2t + 1) a: pairs at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g +
//                                8, 2t + 8) b: pairs at rows 2t and 2t + 8 of column g
//   copy_16_async(to, from, exists)   16 bytes from global to shared memory, zeros unless `exists`
//   commit_copies(), wait_for_copies<n>()   groups of them; all but the last n groups are complete
//   exp2_fast(x)                 2^x to 2 ulp, 0 below the normal numbers
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "cuda/kernels/runtime.h"

#if defined(GPTBENCH_EMULATION)
#include "emulation/mma_emulation.h"
#else
namespace gptbench::cuda {

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ inline void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ inline void ldmatrix_x4_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

template <class A>
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ inline void mma<bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void mma<float16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void copy_16_async(void* shared, const void* global, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(exists ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace gptbench::cuda
#endif
