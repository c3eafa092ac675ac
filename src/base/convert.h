// Conversion between the types in which tensors are stored.
#pragma once

#include "base/dtype.h"

namespace gptbench {

// to[i] = from[i], i = 0 .. n-1, of type f32, bf16, f16 or f64 each; rounded to nearest even where
// `to_type` is shorter.
void convert_elements(const void* from, DType from_type, void* to, DType to_type, int64_t n);

// Whether none of n elements, of one of the same types, is NaN or infinite.
bool all_finite(const void* elements, DType type, int64_t n);

}  // namespace gptbench
