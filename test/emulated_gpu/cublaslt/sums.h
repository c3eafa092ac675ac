// The arithmetic of the emulated cuBLASLt. Sums run in f32, in order of k, a rounding each term or
// (where the compiler fuses them) each two operations, as on a GPU without the tensor cores: a sum
// in double would hide what f32 costs. Products of fp8 are added as tensor cores of compute
// capability 9.0 do, 32 at a time, each cut off 13 bits below the largest of them, and what 128 of
// them give is added up in f32 (with fast accumulation: not before the end).
#pragma once

#include "emulated_gpu/cublaslt/problem.h"

namespace gptbench::emulation {

// sums[i + j m] = sum over k_begin <= l < k_end of op(A)[i,l] op(B)[l,j].
void form_sums(const Problem& problem, const void* a, const void* b, int64_t k_begin, int64_t k_end,
               float* sums);

// Sums of op(A) over k (by row) or of op(B) (by column).
void sum_factor(const Problem& problem, bool of_a, const void* factor, float* sums);

float load(cudaDataType_t type, const void* base, int64_t index);
// Rounds to nearest, ties to even.
void store(cudaDataType_t type, void* base, int64_t index, float value);

}  // namespace gptbench::emulation
