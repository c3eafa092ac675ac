// The kernels under test: those of cuda/ on the GPU, each call waited for; matrix products are the
// host's.
#include "cuda/cuda_queue.h"
#include "cuda/kernels.h"
#include "kernel_test.h"

namespace gptbench::test {
namespace {

template <ComputeType compute, auto entry>
struct Waited;
template <ComputeType compute, class Arguments,
          void (*KernelTable::*entry)(Queue&, const Arguments&)>
struct Waited<compute, entry> {
  static void run(Queue&, const Arguments& arguments) {
    static CudaQueue queue;
    (cuda_kernels(compute).*entry)(queue, arguments);
    queue.synchronize();
  }
};

template <ComputeType compute>
KernelTable table_of(const KernelTable& host) {
  KernelTable table = host;
#define GPTBENCH_WAITED(name) table.name = Waited<compute, &KernelTable::name>::run
  GPTBENCH_WAITED(bias_backward);
  GPTBENCH_WAITED(layernorm_forward);
  GPTBENCH_WAITED(layernorm_backward);
  GPTBENCH_WAITED(rmsnorm_forward);
  GPTBENCH_WAITED(rmsnorm_backward);
  GPTBENCH_WAITED(attention_forward);
  GPTBENCH_WAITED(attention_backward);
  GPTBENCH_WAITED(rotary);
  GPTBENCH_WAITED(gelu_forward);
  GPTBENCH_WAITED(gelu_backward);
  GPTBENCH_WAITED(swiglu_forward);
  GPTBENCH_WAITED(swiglu_backward);
  GPTBENCH_WAITED(tanh_forward);
  GPTBENCH_WAITED(tanh_backward);
  GPTBENCH_WAITED(residual_forward);
  GPTBENCH_WAITED(dropout_backward);
  GPTBENCH_WAITED(embedding_forward);
  GPTBENCH_WAITED(embedding_backward);
  GPTBENCH_WAITED(cross_entropy_statistics);
  GPTBENCH_WAITED(cross_entropy_combine);
  GPTBENCH_WAITED(cross_entropy_finish);
  GPTBENCH_WAITED(accumulate);
  GPTBENCH_WAITED(squared_norm);
  GPTBENCH_WAITED(sum_scalars);
  GPTBENCH_WAITED(loss_scale);
  GPTBENCH_WAITED(clip_factor);
  GPTBENCH_WAITED(adamw);
  GPTBENCH_WAITED(convert);
  GPTBENCH_WAITED(draw_weights);
  GPTBENCH_WAITED(fp8_quantize);
  GPTBENCH_WAITED(fp8_transpose);
  GPTBENCH_WAITED(fp8_update_scales);
#undef GPTBENCH_WAITED
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

}  // namespace gptbench::test
