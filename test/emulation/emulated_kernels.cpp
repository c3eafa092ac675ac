// The kernels under test: those of cuda/, emulated; GEMMs, which a library does there, are the
// host's.
#include "cuda/kernels/kernels.cuh"
#include "device/host/kernels.h"
#include "kernel_test.h"

namespace gptbench::cuda {

#define GPTBENCH_BY_THE_HOST(name, Arguments)           \
  template <class A>                                    \
  void name(Queue& queue, const Arguments& arguments) { \
    host::name<A>(queue, arguments);                    \
  }
GPTBENCH_LINEAR_KERNELS(GPTBENCH_BY_THE_HOST)
GPTBENCH_LINEAR_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda

namespace gptbench::test {

const KernelTable& kernels_under_test(const Device& /*host*/, ComputeType compute) {
  return compute == ComputeType::bf16   ? cuda::table<bfloat16>
         : compute == ComputeType::fp16 ? cuda::table<float16>
                                        : cuda::table<float>;
}

Queue& queue_under_test(Queue& of_host) {
  return of_host;
}

bool kernels_round_alike() {
  return true;
}

}  // namespace gptbench::test
