#include "device/kernels_ref.h"

#include "device/fused_linear.h"

namespace gptbench {
namespace {

template <class A, class S>
constexpr KernelTable table_of() {
  return {
      ref::linear_forward<A, S>,
      ref::linear_backward_input<A, S>,
      ref::linear_backward_weight<A, S>,
      linear_then_gelu<ref::linear_forward<A, S>, ref::gelu_forward<A, S>>,
      linear_then_gelu_backward<ref::linear_backward_input<A, S>, ref::gelu_backward<A, S>>,
      ref::bias_backward<A, S>,
      ref::layernorm_forward<A, S>,
      ref::layernorm_backward<A, S>,
      ref::rmsnorm_forward<A, S>,
      ref::rmsnorm_backward<A, S>,
      ref::attention_forward<A, S>,
      ref::attention_backward<A, S>,
      ref::rotary<A, S>,
      ref::gelu_forward<A, S>,
      ref::gelu_backward<A, S>,
      ref::swiglu_forward<A, S>,
      ref::swiglu_backward<A, S>,
      ref::tanh_forward<A, S>,
      ref::tanh_backward<A, S>,
      ref::residual_forward<A, S>,
      ref::dropout_backward<A, S>,
      ref::embedding_forward<A, S>,
      ref::embedding_backward<A, S>,
      ref::cross_entropy_statistics<A, S>,
      ref::cross_entropy_combine<A, S>,
      ref::cross_entropy_finish<A, S>,
      ref::accumulate<A, S>,
      ref::squared_norm<A, S>,
      ref::sum_scalars<A, S>,
      ref::loss_scale<A, S>,
      ref::clip_factor<A, S>,
      ref::adamw<A, S>,
      ref::convert<A, S>,
      ref::draw_weights<A, S>,
      ref::fp8_quantize<A, S>,
      ref::fp8_transpose,
      ref::fp8_update_scales,
  };
}

constexpr KernelTable fp32_table = table_of<float, float>();
constexpr KernelTable bf16_table = table_of<bfloat16, float>();
constexpr KernelTable fp16_table = table_of<float16, float>();
constexpr KernelTable fp64_table = table_of<double, double>();

}  // namespace

const KernelTable& ref_kernels(ComputeType compute) {
  switch (compute) {
    case ComputeType::bf16:
      return bf16_table;
    case ComputeType::fp16:
      return fp16_table;
    case ComputeType::fp64:
      return fp64_table;
    case ComputeType::fp32:
      break;
  }
  return fp32_table;
}

}  // namespace gptbench
