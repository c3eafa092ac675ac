// The kernels under test: those of cuda/, emulated; matrix products, which a library does there,
// are the host's.
#include "cuda/kernels/kernels.cuh"
#include "kernel_test.h"

namespace gptbench::test {

const KernelTable& kernels_under_test(const Device& host, ComputeType compute) {
  static KernelTable tables[3];
  const int which = compute == ComputeType::bf16 ? 1 : compute == ComputeType::fp16 ? 2 : 0;
  KernelTable& table = tables[which];
  table = which == 1   ? cuda::table_of<bfloat16>()
          : which == 2 ? cuda::table_of<float16>()
                       : cuda::table_of<float>();
  table.linear_forward = host.kernels(compute).linear_forward;
  table.linear_backward_input = host.kernels(compute).linear_backward_input;
  table.linear_backward_weight = host.kernels(compute).linear_backward_weight;
  return table;
}

}  // namespace gptbench::test
