#include "base/units.h"
#include "cuda/attention/attention.cuh"
#include "cuda/attention/simt_tile.cuh"

namespace gptbench::cuda {
namespace {

// A block computes a tile of queries of one head.
template <class A, class Out, int D_max>
__global__ void __launch_bounds__(simt_threads)
    simt_attention_forward_kernel(ForwardArrays<A, Out> a, Scores scores) {
  using Tile = SimtTile<D_max>;
  constexpr int P = Tile::per_thread;
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  float* const q_tile = shared;
  float* const k_tile = q_tile + Tile::floats;
  float* const v_tile = k_tile + Tile::floats;
  float* const p_tile = v_tile + Tile::floats;
  const AttentionShape& s = scores.s;
  const SimtThread thread;
  // The last tiles, which under a causal mask have most to do, start first.
  const int i0 = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Tile::T;
  const int64_t h = blockIdx.y, b = blockIdx.z;
  const int i1 = i0 + Tile::T < scores.T_q ? i0 + Tile::T : scores.T_q;
  const int length = scores.length(b);
  const float slope = scores.slope(h);

  // State of this thread's rows: maximum and sum so far, and the unnormalised result.
  float max[P], sum[P], acc[P][Tile::columns];
  int position[P];
  GPTBENCH_UNROLL
  for (int i = 0; i < P; ++i) {
    const int row = i0 + thread.ty * P + i;
    max[i] = -HUGE_VALF;
    sum[i] = 0.0f;
    position[i] = scores.q_at(row);
    const bool before = s.keys == KeyBlock::further && row < scores.T_q;
    if (before) max[i] = a.lse[scores.lse(b, h, row)];
    const bool kept = before && max[i] != -HUGE_VALF;
    if (kept) sum[i] = 1.0f;
    GPTBENCH_UNROLL
    for (int c = 0; c < Tile::columns; ++c) {
      const int d = thread.tx + 16 * c;
      acc[i][c] = kept && d < scores.D ? to_float(a.out[scores.out(b, h, row) + d]) : 0.0f;
    }
  }

  load_tile<D_max>(q_tile, a.q + scores.q(b, h, i0), scores.q_row, i1 - i0, scores.D);
  for (int j0 = 0; j0 < scores.T_k && !scores.none_visible(i1, j0, length); j0 += Tile::T) {
    __syncthreads();
    const int64_t at = scores.kv(b, h / scores.group, j0);
    load_tile<D_max>(k_tile, a.k + at, scores.kv_row, scores.T_k - j0, scores.D);
    load_tile<D_max>(v_tile, a.v + at, scores.kv_row, scores.T_k - j0, scores.D);
    __syncthreads();
    float p[P][P];
    multiply_rows<D_max>(p, q_tile, k_tile);
    GPTBENCH_UNROLL
    for (int i = 0; i < P; ++i) {
      float top = max[i];
      bool seen[P];
      GPTBENCH_UNROLL
      for (int j = 0; j < P; ++j) {
        const int key = j0 + thread.tx + 16 * j;
        const int k_position = scores.k_at(key);
        seen[j] = key < scores.T_k && scores.visible(position[i], k_position, length);
        p[i][j] = p[i][j] * scores.scale + Scores::bias(slope, position[i], k_position);
        if (seen[j] && p[i][j] > top) top = p[i][j];
      }
      top = row_max(top);
      const float kept = max[i] == top ? 1.0f : exp_of<A>(max[i] - top);
      float row = 0.0f;
      GPTBENCH_UNROLL
      for (int j = 0; j < P; ++j) {
        p[i][j] = seen[j] ? exp_of<A>(p[i][j] - top) : 0.0f;
        row += p[i][j];
        if (scores.mask.on)
          p[i][j] *= scores.dropped(b, h, position[i], scores.k_at(j0 + thread.tx + 16 * j));
      }
      max[i] = top;
      sum[i] = sum[i] * kept + row_sum(row);
      GPTBENCH_UNROLL
      for (int c = 0; c < Tile::columns; ++c) acc[i][c] *= kept;
    }
    store_scores<D_max>(p_tile, p);
    __syncwarp();  // a row of probabilities is written and read by one warp
    multiply_scores<D_max, false>(acc, p_tile, v_tile);
  }

  GPTBENCH_UNROLL
  for (int i = 0; i < P; ++i) {
    const int row = i0 + thread.ty * P + i;
    if (row >= scores.T_q) continue;
    const bool none = sum[i] == 0.0f;
    const float inverse = none ? 0.0f : 1.0f / sum[i];
    GPTBENCH_UNROLL
    for (int c = 0; c < Tile::columns; ++c) {
      const int d = thread.tx + 16 * c;
      if (d < scores.D) a.out[scores.out(b, h, row) + d] = from_float<Out>(acc[i][c] * inverse);
    }
    if (thread.tx == 0) a.lse[scores.lse(b, h, row)] = none ? -HUGE_VALF : max[i] + logf(sum[i]);
  }
}

template <class A, class Out>
void forward(Queue& queue, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  const ForwardArrays<A, Out> arrays(a);
  with_head_size<A>(s.D, [&](auto size) {
    constexpr int D_max = decltype(size)::value;
    using Tile = SimtTile<D_max>;
    const dim3 grid{static_cast<unsigned>(ceil_div(s.T_q, Tile::T)), static_cast<unsigned>(s.H),
                    static_cast<unsigned>(s.B)};
    constexpr size_t shared = Tile::shared_bytes(3);
    launch(GPTBENCH_KERNEL(simt_attention_forward_kernel<A, Out, D_max>), grid, simt_threads,
           shared, stream_of(queue), arrays, Scores(s));
  });
}

}  // namespace

template <class A>
void simt_attention_forward(Queue& queue, const AttentionForward& a) {
  if (a.shape.keys == KeyBlock::all)
    forward<A, A>(queue, a);
  else
    forward<A, float>(queue, a);
}

template void simt_attention_forward<float>(Queue&, const AttentionForward&);
template void simt_attention_forward<bfloat16>(Queue&, const AttentionForward&);
template void simt_attention_forward<float16>(Queue&, const AttentionForward&);

}  // namespace gptbench::cuda
