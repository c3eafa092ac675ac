#include "device/kernels_host.h"

#include "device/fused_linear.h"

namespace gptbench {
namespace {

template <class A>
constexpr KernelTable table_of() {
  return {
      host::linear_forward<A>,
      host::linear_backward_input<A>,
      host::linear_backward_weight<A>,
      linear_then_gelu<host::linear_forward<A>, host::gelu_forward<A>>,
      linear_then_gelu_backward<host::linear_backward_input<A>, host::gelu_backward<A>>,
      host::bias_backward<A>,
      host::layernorm_forward<A>,
      host::layernorm_backward<A>,
      host::rmsnorm_forward<A>,
      host::rmsnorm_backward<A>,
      host::attention_forward<A>,
      host::attention_backward<A>,
      host::rotary<A>,
      host::gelu_forward<A>,
      host::gelu_backward<A>,
      host::swiglu_forward<A>,
      host::swiglu_backward<A>,
      host::tanh_forward<A>,
      host::tanh_backward<A>,
      host::residual_forward<A>,
      host::dropout_backward<A>,
      host::embedding_forward<A>,
      host::embedding_backward<A>,
      host::cross_entropy_statistics<A>,
      host::cross_entropy_combine,
      host::cross_entropy_finish<A>,
      host::accumulate,
      host::squared_norm<A>,
      host::sum_scalars,
      host::loss_scale,
      host::clip_factor,
      host::adamw<A>,
      host::convert<A>,
      host::draw_weights<A>,
      host::fp8_quantize<A>,
      host::fp8_transpose,
      host::fp8_update_scales,
  };
}

constexpr KernelTable fp32_table = table_of<float>();
constexpr KernelTable bf16_table = table_of<bfloat16>();
constexpr KernelTable fp16_table = table_of<float16>();

}  // namespace

const KernelTable& host_kernels(ComputeType compute) {
  return compute == ComputeType::bf16   ? bf16_table
         : compute == ComputeType::fp16 ? fp16_table
                                        : fp32_table;
}

}  // namespace gptbench
