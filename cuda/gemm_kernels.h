// What matrix products need beside the library: gradients of biases added up, arrays to time on.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/dtype.h"

namespace gptbench {

// y[i] += x[i], i = 0 .. n-1; both f32.
void add_f32(cudaStream_t stream, float* y, const float* x, int64_t n);

// x[i] = a number of roughly normal distribution that depends on i and seed alone, standard
// deviation `scale`: zeros would make products faster than data does. f32, bf16, f16 or fp8.
void fill_random(cudaStream_t stream, void* x, int64_t n, DType type, float scale, uint32_t seed);

}  // namespace gptbench
