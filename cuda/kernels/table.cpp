#include "cuda/kernels.h"
#include "cuda/kernels/kernels.cuh"

namespace gptbench {

const KernelTable& cuda_kernels(ComputeType compute) {
  static constexpr KernelTable fp32 = cuda::table_of<float>();
  static constexpr KernelTable bf16 = cuda::table_of<bfloat16>();
  static constexpr KernelTable fp16 = cuda::table_of<float16>();
  return compute == ComputeType::bf16 ? bf16 : compute == ComputeType::fp16 ? fp16 : fp32;
}

}  // namespace gptbench
