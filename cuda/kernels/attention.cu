#include "cuda/attention/attention.cuh"

#include <algorithm>

#include "base/error.h"
#include "cuda/attention/limits.h"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/reduce.cuh"
#include "plan/workspace.h"

namespace gptbench::cuda {
namespace {

constexpr int threads = 256;

// delta[b,h,i] = sum over d of dout out; one warp per row. 2 B T_q H D elements of A.
template <class A>
__global__ void attention_delta_kernel(float* delta, const A* dout, const A* out, Scores scores) {
  const AttentionShape& s = scores.s;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows = s.B * s.T_q * s.H;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (threads / 32);
  // Consecutive warps take the heads of one row of `out`, which lie side by side.
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * (threads / 32) + threadIdx.x / 32;
       row < rows; row += warps) {
    const int64_t h = row % s.H, i = row / s.H % s.T_q, b = row / s.H / s.T_q;
    const int64_t at = scores.out(b, h, i);
    float sum = 0.0f;
    for (int64_t d = lane; d < s.D; d += 32) sum += to_float(dout[at + d]) * to_float(out[at + d]);
    sum = warp_sum(sum);
    if (lane == 0) delta[(b * s.H + h) * s.T_q + i] = sum;
  }
}

void check_shape(const AttentionShape& s) {
  const int64_t positions = std::max({s.T_q, s.T_k, position_of(s.q_positions, s.T_q - 1) + 1,
                                      position_of(s.k_positions, s.T_k - 1) + 1});
  GPTBENCH_CHECK(s.D <= max_attention_head_size && s.H <= max_attention_heads &&
                     s.B <= max_attention_sequences && positions <= max_attention_positions &&
                     std::max({s.q.row, s.kv.row, s.out.row}) <= max_attention_row,
                 "attention of a size that no kernel of cuda/ takes");
}

}  // namespace

template <class A>
void attention_forward(Queue& queue, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  if (s.B == 0 || s.T_q == 0) return;
  if (library_attention(queue, dtype_of<A>(), a)) return;
  check_shape(s);
  if constexpr (sizeof(A) == 2)
    if (tensor_attention_applies(a)) return tensor_attention_forward<A>(queue, a);
  simt_attention_forward<A>(queue, a);
}

// Scratch memory of our own kernels: cuda_attention_workspace_bytes (plan/workspace.h). D <= 256.
template <class A>
void attention_backward(Queue& queue, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  if (s.B == 0 || s.T_q == 0 || s.T_k == 0) return;
  if (library_attention(queue, dtype_of<A>(), a)) return;
  check_shape(s);
  GPTBENCH_CHECK(a.workspace.bytes >= cuda_attention_workspace_bytes(s.B, s.H, s.T_q),
                 "too little scratch memory for the attention");
  float* const delta = static_cast<float*>(a.workspace.data);
  launch(GPTBENCH_KERNEL(attention_delta_kernel<A>),
         dim3{blocks_for(ceil_div(s.B * s.T_q * s.H, threads / 32), 16), 1, 1}, threads, 0,
         stream_of(queue), delta, static_cast<const A*>(a.dout), static_cast<const A*>(a.out),
         Scores(s));
  if constexpr (sizeof(A) == 2)
    if (tensor_attention_applies(a)) return tensor_attention_backward<A>(queue, a, delta);
  simt_attention_backward<A>(queue, a, delta);
}

GPTBENCH_ATTENTION_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
