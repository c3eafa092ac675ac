#include "base/error.h"
#include "cuda/kernels.h"
#include "cuda/kernels/kernels.cuh"

namespace gptbench {

const KernelTable& cuda_kernels(ComputeType compute) {
  GPTBENCH_CHECK(compute != ComputeType::fp64, "fp64 is computed by device = 'ref' alone");
  return compute == ComputeType::bf16   ? cuda::table<bfloat16>
         : compute == ComputeType::fp16 ? cuda::table<float16>
                                        : cuda::table<float>;
}

}  // namespace gptbench
