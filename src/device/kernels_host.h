// The host's kernels: Kokkos for everything but matrix products, oneDNN for those. Same bits from
// run to run and, matrix products apart, for any number of threads.
#pragma once

#include "device/kernels.h"

namespace gptbench {

// fp32, bf16 and fp16.
const KernelTable& host_kernels(ComputeType compute);

// A: float, bfloat16 or float16. S is float.
namespace host {
template <class A>
void linear_forward(Queue&, const LinearForward&);
template <class A>
void linear_backward_input(Queue&, const LinearBackwardInput&);
template <class A>
void linear_backward_weight(Queue&, const LinearBackwardWeight&);
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
}  // namespace host
}  // namespace gptbench

// Instantiates kernel `name` with arguments `Arguments` for all types of activations.
#define GPTBENCH_HOST_KERNEL(name, Arguments)                                       \
  template void gptbench::host::name<float>(Queue&, const Arguments&);              \
  template void gptbench::host::name<gptbench::bfloat16>(Queue&, const Arguments&); \
  template void gptbench::host::name<gptbench::float16>(Queue&, const Arguments&)
