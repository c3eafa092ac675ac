// Kernels that GEMMs need beside the library: sums of bias gradients, arrays to time on.
#pragma once

#include <cstdint>

#include "base/dtype.h"

struct CUstream_st;  // cudaStream_t points to it

namespace gptbench {

// y[i] += x[i], i = 0 .. n-1; both f32.
void add_f32(CUstream_st* stream, float* y, const float* x, int64_t n);

// x[i] = a number of roughly normal distribution that depends on i and seed alone, standard
// deviation `scale`: zeros would make products faster than data does. f32, bf16, f16 or fp8.
void fill_random(CUstream_st* stream, void* x, int64_t n, DType type, float scale, uint32_t seed);

}  // namespace gptbench
