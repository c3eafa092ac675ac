// The algorithms that the emulated cuBLASLt proposes: sums in one go or in parts (split-K), which
// differ in rounding and in what they want of alignment and workspace.
#pragma once

#include "emulated_gpu/cublaslt/problem.h"

namespace gptbench::emulation {

// What the 64 bytes of an algorithm stand for.
struct Algorithm {
  uint32_t magic;
  // What the algorithm is for: a hash of types, transposes and epilogue.
  uint32_t kind;
  int32_t id;
  int32_t parts;  // that the sum over k is formed in
  cublasLtReductionScheme_t reduction;
  // Bytes that the caller has promised addresses to be multiples of.
  uint32_t align_a, align_b, align_c, align_d, align_bias, align_aux;
  uint32_t refuses;  // 1: the check accepts it and the call does not
  uint32_t unused[4];
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t), "an algorithm is 64 bytes");

// What sums in parts keep in the workspace; 0 where there is one part.
size_t workspace_of(const Algorithm& algorithm, const Problem& problem);

// CUBLAS_STATUS_INVALID_VALUE where `algo` is none, or one of other products.
cublasStatus_t read_algorithm(const cublasLtMatmulAlgo_t& algo, const Problem& problem,
                              Algorithm& algorithm);

// The plainest, which every product has whose addresses are aligned to their elements: what
// cublasLtMatmul() takes where the caller names none.
Algorithm plain_algorithm(const Problem& problem);

}  // namespace gptbench::emulation
