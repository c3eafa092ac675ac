// Matrix products of fp8 factors on a host: decoded to bfloat16, which holds every fp8 number
// divided by a power of two, block by block, and multiplied by oneDNN with sums in f32. What a GPU
// computes but for the order of its sums.
#pragma once

#include "device/gemm_onednn.h"

namespace gptbench {

// A factor: rows `ld` bytes apart, as GemmFactor has it.
struct Fp8Factor {
  const void* data;
  int64_t ld;
  bool transposed;
  DType type;
  const float* inverse;  // of the scale: what the numbers are multiplied with
};

// As run_gemm(): C[m,n] = A B + bias, or C += A B; C and bias are bf16 or f32 (`out`). Takes 4 MiB
// of the workspace for blocks and leaves the rest to the products.
struct Fp8Gemm {
  DType out;
  int64_t m, n, k;
  Fp8Factor a, b;
  void* c;
  int64_t ldc;
  const void* bias;
  bool accumulate;
};
// m or n, and k, of a block.
constexpr int64_t fp8_gemm_block_mn = 512, fp8_gemm_block_k = 1024;
void run_gemm_fp8(const Fp8Gemm& gemm, const Workspace& workspace);

}  // namespace gptbench
