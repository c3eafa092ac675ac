// Every kernel of the table but the matrix products, for activations of type A = float, bfloat16 or
// float16; S is float. Each enqueues on the queue's stream. Results do not depend on the device's
// number of multiprocessors, nor on timing: no sum is made with atomic additions of floating-point
// numbers.
#pragma once

#include "device/kernels.h"

namespace gptbench::cuda {

template <class A>
void bias_backward(Queue&, const BiasBackward&);
template <class A>
void layernorm_forward(Queue&, const LayerNormForward&);
template <class A>
void layernorm_backward(Queue&, const LayerNormBackward&);
template <class A>
void rmsnorm_forward(Queue&, const RmsNormForward&);
template <class A>
void rmsnorm_backward(Queue&, const RmsNormBackward&);
// Scratch memory of backward: cuda_attention_workspace_bytes (plan/workspace.h). D <= 256.
template <class A>
void attention_forward(Queue&, const AttentionForward&);
template <class A>
void attention_backward(Queue&, const AttentionBackward&);
template <class A>
void rotary(Queue&, const Rotary&);
template <class A>
void gelu_forward(Queue&, const GeluForward&);
template <class A>
void gelu_backward(Queue&, const GeluBackward&);
template <class A>
void swiglu_forward(Queue&, const SwigluForward&);
template <class A>
void swiglu_backward(Queue&, const SwigluBackward&);
template <class A>
void tanh_forward(Queue&, const TanhForward&);
template <class A>
void tanh_backward(Queue&, const TanhBackward&);
template <class A>
void residual_forward(Queue&, const ResidualForward&);
template <class A>
void dropout_backward(Queue&, const DropoutBackward&);
template <class A>
void embedding_forward(Queue&, const EmbeddingForward&);
template <class A>
void embedding_backward(Queue&, const EmbeddingBackward&);
template <class A>
void cross_entropy_statistics(Queue&, const CrossEntropyStatistics&);
void cross_entropy_combine(Queue&, const CrossEntropyCombine&);
template <class A>
void cross_entropy_finish(Queue&, const CrossEntropyFinish&);
void accumulate(Queue&, const Accumulate&);
template <class A>
void squared_norm(Queue&, const SquaredNorm&);
void sum_scalars(Queue&, const SumScalars&);
void loss_scale(Queue&, const LossScale&);
void clip_factor(Queue&, const ClipFactor&);
template <class A>
void adamw(Queue&, const AdamW&);
template <class A>
void convert(Queue&, const Convert&);
template <class A>
void draw_weights(Queue&, const DrawWeights&);
template <class A>
void fp8_quantize(Queue&, const Fp8Quantize&);
void fp8_transpose(Queue&, const Fp8Transpose&);
void fp8_update_scales(Queue&, const Fp8UpdateScales&);

// The table with all of them; linear_* are null.
template <class A>
constexpr KernelTable table_of() {
  return {
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      bias_backward<A>,
      layernorm_forward<A>,
      layernorm_backward<A>,
      rmsnorm_forward<A>,
      rmsnorm_backward<A>,
      attention_forward<A>,
      attention_backward<A>,
      rotary<A>,
      gelu_forward<A>,
      gelu_backward<A>,
      swiglu_forward<A>,
      swiglu_backward<A>,
      tanh_forward<A>,
      tanh_backward<A>,
      residual_forward<A>,
      dropout_backward<A>,
      embedding_forward<A>,
      embedding_backward<A>,
      cross_entropy_statistics<A>,
      cross_entropy_combine,
      cross_entropy_finish<A>,
      accumulate,
      squared_norm<A>,
      sum_scalars,
      loss_scale,
      clip_factor,
      adamw<A>,
      convert<A>,
      draw_weights<A>,
      fp8_quantize<A>,
      fp8_transpose,
      fp8_update_scales,
  };
}

}  // namespace gptbench::cuda

// Instantiates kernel `name` with arguments `Arguments` for all types of activations.
#define GPTBENCH_CUDA_KERNEL(name, Arguments)                                       \
  template void gptbench::cuda::name<float>(Queue&, const Arguments&);              \
  template void gptbench::cuda::name<gptbench::bfloat16>(Queue&, const Arguments&); \
  template void gptbench::cuda::name<gptbench::float16>(Queue&, const Arguments&)
