// The kernels under test: those of cuda/ on the GPU, each call waited for; matrix products are the
// host's.
#include "cuda/cuda_queue.h"
#include "cuda/kernels.h"
#include "kernel_test.h"

namespace gptbench::test {
namespace {

template <ComputeType compute, auto entry>
struct Waited;
template <ComputeType compute, class Group, class Arguments,
          void (*Group::*entry)(Queue&, const Arguments&)>
struct Waited<compute, entry> {
  static void run(Queue&, const Arguments& arguments) {
    static CudaQueue queue;
    (cuda_kernels(compute).*entry)(queue, arguments);
    queue.synchronize();
  }
};

template <ComputeType compute>
KernelTable table_of(const KernelTable& host) {
  KernelTable table;
#define GPTBENCH_WAITED(name, Arguments) table.name = Waited<compute, &KernelTable::name>::run;
  GPTBENCH_KERNELS(GPTBENCH_WAITED)
#undef GPTBENCH_WAITED
#define GPTBENCH_BY_THE_HOST(name, Arguments) table.name = host.name;
  GPTBENCH_LINEAR_KERNELS(GPTBENCH_BY_THE_HOST)
#undef GPTBENCH_BY_THE_HOST
  return table;
}

}  // namespace

const KernelTable& kernels_under_test(const Device& host, ComputeType compute) {
  static KernelTable fp32, bf16, fp16;
  if (compute == ComputeType::bf16)
    return bf16 = table_of<ComputeType::bf16>(host.kernels(compute));
  if (compute == ComputeType::fp16)
    return fp16 = table_of<ComputeType::fp16>(host.kernels(compute));
  return fp32 = table_of<ComputeType::fp32>(host.kernels(compute));
}

Queue& queue_under_test(Queue& /*of_host*/) {
  static CudaQueue queue;
  return queue;
}

bool kernels_round_alike() {
  return false;
}

}  // namespace gptbench::test
