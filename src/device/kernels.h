// The kernel table: every computation that the engine can ask of a device.
//
// Shapes: B sequences of a micro-batch, T positions, R = B T rows, C hidden size, H heads, D head
// size, V vocabulary; K and N inner and outer sizes of a linear layer; `_tp` marks the share of one
// tensor-parallel rank (all sizes here are local ones). Arrays are row-major.
//
// Types: A is the type of activations and of the parameters that GEMMs read, S that of statistics,
// gradients of parameters, master parameters and accumulation:
//     fp32: A = S = float      bf16: A = bfloat16, S = float      fp64: A = S = double (ref only)
//                              fp16: A = float16, S = float
// Token ids are int32. Sums over R, C or K run in S or wider.
//
// "assigns" means that the output is overwritten, "accumulates" that it is added to. Outputs alias
// inputs only where stated. A call with no rows (B = 0 or R = 0) does nothing. No kernel allocates.
#pragma once

#include "device/arguments_attention.h"
#include "device/arguments_elementwise.h"
#include "device/arguments_linear.h"
#include "device/arguments_loss.h"
#include "device/arguments_norm.h"
#include "device/arguments_types.h"
#include "device/arguments_update.h"

namespace gptbench {

class Queue;

// One table a device and compute type. Fields are named as in reports; kernel_names lists them all.
struct KernelTable {
  void (*linear_forward)(Queue&, const LinearForward&);
  void (*linear_backward_input)(Queue&, const LinearBackwardInput&);
  void (*linear_backward_weight)(Queue&, const LinearBackwardWeight&);
  void (*linear_gelu_forward)(Queue&, const LinearGeluForward&);
  void (*linear_gelu_backward_input)(Queue&, const LinearGeluBackwardInput&);
  void (*bias_backward)(Queue&, const BiasBackward&);
  void (*layernorm_forward)(Queue&, const LayerNormForward&);
  void (*layernorm_backward)(Queue&, const LayerNormBackward&);
  void (*rmsnorm_forward)(Queue&, const RmsNormForward&);
  void (*rmsnorm_backward)(Queue&, const RmsNormBackward&);
  void (*attention_forward)(Queue&, const AttentionForward&);
  void (*attention_backward)(Queue&, const AttentionBackward&);
  void (*rotary)(Queue&, const Rotary&);
  void (*gelu_forward)(Queue&, const GeluForward&);
  void (*gelu_backward)(Queue&, const GeluBackward&);
  void (*swiglu_forward)(Queue&, const SwigluForward&);
  void (*swiglu_backward)(Queue&, const SwigluBackward&);
  void (*tanh_forward)(Queue&, const TanhForward&);
  void (*tanh_backward)(Queue&, const TanhBackward&);
  void (*residual_forward)(Queue&, const ResidualForward&);
  void (*dropout_backward)(Queue&, const DropoutBackward&);
  void (*embedding_forward)(Queue&, const EmbeddingForward&);
  void (*embedding_backward)(Queue&, const EmbeddingBackward&);
  void (*cross_entropy_statistics)(Queue&, const CrossEntropyStatistics&);
  void (*cross_entropy_combine)(Queue&, const CrossEntropyCombine&);
  void (*cross_entropy_finish)(Queue&, const CrossEntropyFinish&);
  void (*accumulate)(Queue&, const Accumulate&);
  void (*squared_norm)(Queue&, const SquaredNorm&);
  void (*sum_scalars)(Queue&, const SumScalars&);
  void (*loss_scale)(Queue&, const LossScale&);
  void (*clip_factor)(Queue&, const ClipFactor&);
  void (*adamw)(Queue&, const AdamW&);
  void (*convert)(Queue&, const Convert&);
  void (*draw_weights)(Queue&, const DrawWeights&);
  void (*fp8_quantize)(Queue&, const Fp8Quantize&);
  void (*fp8_transpose)(Queue&, const Fp8Transpose&);
  void (*fp8_update_scales)(Queue&, const Fp8UpdateScales&);
};

// In the order of KernelTable's fields.
inline constexpr const char* kernel_names[] = {
    "linear_forward",
    "linear_backward_input",
    "linear_backward_weight",
    "linear_gelu_forward",
    "linear_gelu_backward_input",
    "bias_backward",
    "layernorm_forward",
    "layernorm_backward",
    "rmsnorm_forward",
    "rmsnorm_backward",
    "attention_forward",
    "attention_backward",
    "rotary",
    "gelu_forward",
    "gelu_backward",
    "swiglu_forward",
    "swiglu_backward",
    "tanh_forward",
    "tanh_backward",
    "residual_forward",
    "dropout_backward",
    "embedding_forward",
    "embedding_backward",
    "cross_entropy_statistics",
    "cross_entropy_combine",
    "cross_entropy_finish",
    "accumulate",
    "squared_norm",
    "sum_scalars",
    "loss_scale",
    "clip_factor",
    "adamw",
    "convert",
    "draw_weights",
    "fp8_quantize",
    "fp8_transpose",
    "fp8_update_scales",
};
static_assert(sizeof(KernelTable) / sizeof(void (*)()) ==
                  sizeof(kernel_names) / sizeof(kernel_names[0]),
              "one name a kernel");

}  // namespace gptbench
