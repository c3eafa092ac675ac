// Number formats by the names that decks, results and data sheets give them.
#pragma once

#include "base/choice.h"
#include "base/dtype.h"

namespace gptbench {

GPTBENCH_CHOICE(Precision, auto_, fp32, bf16, fp16, fp8, fp64)

// Element type of arrays. fp8 arrays are copies with a type of their own (plan/fp8.h).
constexpr DType dtype_of(Precision precision) {
  return precision == Precision::bf16   ? DType::bf16
         : precision == Precision::fp16 ? DType::f16
         : precision == Precision::fp64 ? DType::f64
                                        : DType::f32;
}

}  // namespace gptbench
