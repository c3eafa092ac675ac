// Attention in tiles, the scores never in memory. Two implementations:
//   simt_*     arithmetic in float, D <= 256, any alignment: for A = float, and where the other
//              does not apply;
//   tensor_*   products of bfloat16 or float16 on tensor cores (mma.sync, compute capability 8.0),
//              sums in float, D <= 128 a multiple of 8 (padded to 64 or 128 in shared memory), rows
//              at multiples of 16 bytes.
// Both make the same bits from run to run: every output element is summed by one warp, in the order
// of the tiles. Backward therefore computes the scores twice, once for dq and once for dk and dv.
#pragma once

#include "cuda/attention/scores.cuh"
#include "device/arguments_attention.h"

namespace gptbench {

class Queue;

// Whether the library of the queue's device took the call (cuda/attention_library.h); `type` is
// that of activations.
bool library_attention(Queue& queue, DType type, const AttentionForward& call);
bool library_attention(Queue& queue, DType type, const AttentionBackward& call);

}  // namespace gptbench

namespace gptbench::cuda {

template <class A>
void simt_attention_forward(Queue&, const AttentionForward&);
// delta[b,h,i] = sum over d of dout out, [B, H, T_q].
template <class A>
void simt_attention_backward(Queue&, const AttentionBackward&, const float* delta);

// Shared memory per block of the largest tensor_* kernel; GPUs of compute capability 8.6, 8.9 and
// 12.x offer 99 KiB.
constexpr size_t tensor_shared_bytes = size_t{96} << 10;
bool tensor_attention_applies(const AttentionForward&);
bool tensor_attention_applies(const AttentionBackward&);
template <class A>
void tensor_attention_forward(Queue&, const AttentionForward&);
template <class A>
void tensor_attention_backward(Queue&, const AttentionBackward&, const float* delta);

}  // namespace gptbench::cuda
