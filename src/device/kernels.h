// The kernel table: every computation that a device offers to the engine.
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
// "Assigns" means that outputs are overwritten, "accumulates" that they are added to. Outputs alias
// inputs only where stated. A call without rows (B = 0 or R = 0) does nothing. No kernel allocates.
#pragma once

#include "device/arguments_attention.h"
#include "device/arguments_elementwise.h"
#include "device/arguments_linear.h"
#include "device/arguments_loss.h"
#include "device/arguments_norm.h"
#include "device/arguments_types.h"
#include "device/arguments_update.h"

// The list of kernels: X(name, Arguments) for each. A group is a source file, of the same name in
// src/device/ref, src/device/host and cuda/kernels (two where one would be too long: norm_forward
// and norm_backward); a kernel added here is one that every back end has to define there.
#define GPTBENCH_LINEAR_KERNELS(X)                \
  X(linear_forward, LinearForward)                \
  X(linear_backward_input, LinearBackwardInput)   \
  X(linear_backward_weight, LinearBackwardWeight) \
  X(linear_gelu_forward, LinearGeluForward)       \
  X(linear_gelu_backward_input, LinearGeluBackwardInput)
#define GPTBENCH_BIAS_KERNELS(X) X(bias_backward, BiasBackward)
#define GPTBENCH_NORM_KERNELS(X)           \
  X(layernorm_forward, LayerNormForward)   \
  X(layernorm_backward, LayerNormBackward) \
  X(rmsnorm_forward, RmsNormForward)       \
  X(rmsnorm_backward, RmsNormBackward)
#define GPTBENCH_ATTENTION_KERNELS(X)    \
  X(attention_forward, AttentionForward) \
  X(attention_backward, AttentionBackward)
#define GPTBENCH_ROTARY_KERNELS(X) X(rotary, Rotary)
#define GPTBENCH_ACTIVATION_KERNELS(X) \
  X(gelu_forward, GeluForward)         \
  X(gelu_backward, GeluBackward)       \
  X(swiglu_forward, SwigluForward)     \
  X(swiglu_backward, SwigluBackward)   \
  X(tanh_forward, TanhForward)         \
  X(tanh_backward, TanhBackward)
#define GPTBENCH_RESIDUAL_KERNELS(X)   \
  X(residual_forward, ResidualForward) \
  X(dropout_backward, DropoutBackward)
#define GPTBENCH_EMBEDDING_KERNELS(X)    \
  X(embedding_forward, EmbeddingForward) \
  X(embedding_backward, EmbeddingBackward)
#define GPTBENCH_LOSS_KERNELS(X)                      \
  X(cross_entropy_statistics, CrossEntropyStatistics) \
  X(cross_entropy_combine, CrossEntropyCombine)       \
  X(cross_entropy_finish, CrossEntropyFinish)         \
  X(cross_entropy, CrossEntropy)
#define GPTBENCH_OPTIMIZER_KERNELS(X) \
  X(accumulate, Accumulate)           \
  X(squared_norm, SquaredNorm)        \
  X(sum_scalars, SumScalars)          \
  X(loss_scale, LossScale)            \
  X(clip_factor, ClipFactor)          \
  X(adamw, AdamW)
#define GPTBENCH_CONVERT_KERNELS(X) X(convert, Convert)
#define GPTBENCH_WEIGHTS_KERNELS(X) X(draw_weights, DrawWeights)
#define GPTBENCH_TRIAD_KERNELS(X) X(triad, Triad)
#define GPTBENCH_FP8_KERNELS(X)  \
  X(fp8_quantize, Fp8Quantize)   \
  X(fp8_transpose, Fp8Transpose) \
  X(fp8_update_scales, Fp8UpdateScales)

// The groups by what calls them: GEMMs, layers, or what surrounds these in a step and before it,
// with the triad of calibrations.
#define GPTBENCH_KERNELS_OF_GEMMS(X) \
  GPTBENCH_LINEAR_KERNELS(X)         \
  GPTBENCH_BIAS_KERNELS(X)           \
  GPTBENCH_FP8_KERNELS(X)            \
  GPTBENCH_CONVERT_KERNELS(X)
#define GPTBENCH_KERNELS_OF_LAYERS(X) \
  GPTBENCH_NORM_KERNELS(X)            \
  GPTBENCH_ATTENTION_KERNELS(X)       \
  GPTBENCH_ROTARY_KERNELS(X)          \
  GPTBENCH_ACTIVATION_KERNELS(X)      \
  GPTBENCH_RESIDUAL_KERNELS(X)
#define GPTBENCH_KERNELS_OF_STEPS(X) \
  GPTBENCH_EMBEDDING_KERNELS(X)      \
  GPTBENCH_LOSS_KERNELS(X)           \
  GPTBENCH_OPTIMIZER_KERNELS(X)      \
  GPTBENCH_WEIGHTS_KERNELS(X)        \
  GPTBENCH_TRIAD_KERNELS(X)
#define GPTBENCH_KERNELS(X)     \
  GPTBENCH_KERNELS_OF_GEMMS(X)  \
  GPTBENCH_KERNELS_OF_LAYERS(X) \
  GPTBENCH_KERNELS_OF_STEPS(X)

namespace gptbench {

class Queue;

// One table per device and compute type. Fields are named as in reports.
#define GPTBENCH_ENTRY(name, Arguments) void (*name)(Queue&, const Arguments&);
struct GemmKernels {
  GPTBENCH_KERNELS_OF_GEMMS(GPTBENCH_ENTRY)
};
struct LayerKernels {
  GPTBENCH_KERNELS_OF_LAYERS(GPTBENCH_ENTRY)
};
struct StepKernels {
  GPTBENCH_KERNELS_OF_STEPS(GPTBENCH_ENTRY)
};
#undef GPTBENCH_ENTRY
struct KernelTable : GemmKernels, LayerKernels, StepKernels {};

}  // namespace gptbench
