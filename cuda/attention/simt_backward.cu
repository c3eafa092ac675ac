#include "base/units.h"
#include "cuda/attention/attention.cuh"
#include "cuda/attention/simt_tile.cuh"

namespace gptbench::cuda {
namespace {

// From scores s and the gradients dp of the probabilities of a tile, both q k^T and dout v^T as
// they are: p becomes the dropped probabilities, dp the gradients of the scores, P (Z dP - delta).
template <class A, int D_max>
__device__ inline void score_gradients(
    float (&p)[SimtTile<D_max>::per_thread][SimtTile<D_max>::per_thread],
    float (&dp)[SimtTile<D_max>::per_thread][SimtTile<D_max>::per_thread], const Scores& scores,
    const float* lse, const float* delta, int64_t b, int64_t h, int i0, int j0, int length,
    float slope) {
  constexpr int P = SimtTile<D_max>::per_thread;
  const AttentionShape& s = scores.s;
  const SimtThread thread;
  GPTBENCH_UNROLL
  for (int i = 0; i < P; ++i) {
    const int row = i0 + thread.ty * P + i;
    const bool exists = row < scores.T_q;
    const int q_position = scores.q_at(row);
    const float row_lse = exists ? lse[scores.lse(b, h, row)] : 0.0f;
    const float row_delta = exists ? delta[(b * s.H + h) * s.T_q + row] : 0.0f;
    GPTBENCH_UNROLL
    for (int j = 0; j < P; ++j) {
      const int key = j0 + thread.tx + 16 * j;
      const int k_position = scores.k_at(key);
      if (!exists || key >= scores.T_k || !scores.visible(q_position, k_position, length)) {
        p[i][j] = dp[i][j] = 0.0f;
        continue;
      }
      const float score = p[i][j] * scores.scale + Scores::bias(slope, q_position, k_position);
      const float probability = exp_of<A>(score - row_lse);
      const float factor = scores.mask.on ? scores.dropped(b, h, q_position, k_position) : 1.0f;
      p[i][j] = probability * factor;
      dp[i][j] = probability * (factor * dp[i][j] - row_delta);
    }
  }
}

template <class Gradient>
__device__ inline void put(Gradient* at, float value, bool adds) {
  *at = from_float<Gradient>(adds ? to_float(*at) + value : value);
}

// dq of a tile of queries of one head: a pass over the keys.
template <class A, class Gradient, int D_max>
__global__ void __launch_bounds__(simt_threads)
    simt_attention_dq_kernel(BackwardArrays<A, Gradient> a, Scores scores) {
  using Tile = SimtTile<D_max>;
  constexpr int P = Tile::per_thread;
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  float* const q_tile = shared;
  float* const dout_tile = q_tile + Tile::floats;
  float* const k_tile = dout_tile + Tile::floats;
  float* const v_tile = k_tile + Tile::floats;
  float* const ds_tile = v_tile + Tile::floats;
  const AttentionShape& s = scores.s;
  const SimtThread thread;
  const int i0 = static_cast<int>(gridDim.x - 1 - blockIdx.x) * Tile::T;
  const int64_t h = blockIdx.y, b = blockIdx.z;
  const int i1 = i0 + Tile::T < scores.T_q ? i0 + Tile::T : scores.T_q;
  const int length = scores.length(b);
  const float slope = scores.slope(h);

  float dq[P][Tile::columns] = {};
  load_tile<D_max>(q_tile, a.q + scores.q(b, h, i0), scores.q_row, i1 - i0, scores.D);
  load_tile<D_max>(dout_tile, a.dout + scores.out(b, h, i0), scores.out_row, i1 - i0, scores.D);
  for (int j0 = 0; j0 < scores.T_k && !scores.none_visible(i1, j0, length); j0 += Tile::T) {
    __syncthreads();
    const int64_t at = scores.kv(b, h / scores.group, j0);
    load_tile<D_max>(k_tile, a.k + at, scores.kv_row, scores.T_k - j0, scores.D);
    load_tile<D_max>(v_tile, a.v + at, scores.kv_row, scores.T_k - j0, scores.D);
    __syncthreads();
    float p[P][P], ds[P][P];
    multiply_rows<D_max>(p, q_tile, k_tile);
    multiply_rows<D_max>(ds, dout_tile, v_tile);
    score_gradients<A, D_max>(p, ds, scores, a.lse, a.delta, b, h, i0, j0, length, slope);
    store_scores<D_max>(ds_tile, ds);
    __syncwarp();  // a row is written and read by one warp
    multiply_scores<D_max, false>(dq, ds_tile, k_tile);
  }
  GPTBENCH_UNROLL
  for (int i = 0; i < P; ++i) {
    const int row = i0 + thread.ty * P + i;
    if (row >= scores.T_q) continue;
    GPTBENCH_UNROLL
    for (int c = 0; c < Tile::columns; ++c) {
      const int d = thread.tx + 16 * c;
      if (d < scores.D)
        put(a.dq + b * a.dq_strides.step + row * a.dq_strides.row + h * s.D + d,
            scores.scale * dq[i][c], scores.adds);
    }
  }
}

// dk and dv of a tile of keys of one key/value head: a pass over the queries of the heads that
// share it.
template <class A, class Gradient, int D_max>
__global__ void __launch_bounds__(simt_threads)
    simt_attention_dkdv_kernel(BackwardArrays<A, Gradient> a, Scores scores) {
  using Tile = SimtTile<D_max>;
  constexpr int P = Tile::per_thread;
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  float* const q_tile = shared;
  float* const dout_tile = q_tile + Tile::floats;
  float* const k_tile = dout_tile + Tile::floats;
  float* const v_tile = k_tile + Tile::floats;
  float* const score_tile = v_tile + Tile::floats;
  const AttentionShape& s = scores.s;
  const SimtThread thread;
  const int j0 = static_cast<int>(blockIdx.x) * Tile::T;
  const int64_t h_kv = blockIdx.y, b = blockIdx.z;
  const int length = scores.length(b);

  float dk[P][Tile::columns] = {}, dv[P][Tile::columns] = {};
  load_tile<D_max>(k_tile, a.k + scores.kv(b, h_kv, j0), scores.kv_row, scores.T_k - j0, scores.D);
  load_tile<D_max>(v_tile, a.v + scores.kv(b, h_kv, j0), scores.kv_row, scores.T_k - j0, scores.D);
  for (int64_t h = h_kv * scores.group; h < (h_kv + 1) * scores.group; ++h) {
    const float slope = scores.slope(h);
    for (int i0 = 0; i0 < scores.T_q; i0 += Tile::T) {
      const int i1 = i0 + Tile::T < scores.T_q ? i0 + Tile::T : scores.T_q;
      if (scores.none_visible(i1, j0, length)) continue;
      __syncthreads();
      load_tile<D_max>(q_tile, a.q + scores.q(b, h, i0), scores.q_row, i1 - i0, scores.D);
      load_tile<D_max>(dout_tile, a.dout + scores.out(b, h, i0), scores.out_row, i1 - i0, scores.D);
      __syncthreads();
      float p[P][P], ds[P][P];
      multiply_rows<D_max>(p, q_tile, k_tile);
      multiply_rows<D_max>(ds, dout_tile, v_tile);
      score_gradients<A, D_max>(p, ds, scores, a.lse, a.delta, b, h, i0, j0, length, slope);
      store_scores<D_max>(score_tile, p);
      __syncthreads();
      multiply_scores<D_max, true>(dv, score_tile, dout_tile);
      __syncthreads();
      store_scores<D_max>(score_tile, ds);
      __syncthreads();
      multiply_scores<D_max, true>(dk, score_tile, q_tile);
    }
  }
  GPTBENCH_UNROLL
  for (int i = 0; i < P; ++i) {
    const int key = j0 + thread.ty * P + i;
    if (key >= scores.T_k) continue;
    GPTBENCH_UNROLL
    for (int c = 0; c < Tile::columns; ++c) {
      const int d = thread.tx + 16 * c;
      if (d >= scores.D) continue;
      const int64_t at = b * a.dkv_strides.step + key * a.dkv_strides.row + h_kv * s.D + d;
      put(a.dk + at, scores.scale * dk[i][c], scores.adds);
      put(a.dv + at, dv[i][c], scores.adds);
    }
  }
}

template <class A, class Gradient>
void backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  const AttentionShape& s = a.shape;
  const BackwardArrays<A, Gradient> arrays(a, delta);
  with_head_size<A>(s.D, [&](auto size) {
    constexpr int D_max = decltype(size)::value;
    using Tile = SimtTile<D_max>;
    constexpr size_t shared = Tile::shared_bytes(4);
    const unsigned sequences = static_cast<unsigned>(s.B);
    launch(GPTBENCH_KERNEL(simt_attention_dq_kernel<A, Gradient, D_max>),
           dim3{static_cast<unsigned>(ceil_div(s.T_q, Tile::T)), static_cast<unsigned>(s.H),
                sequences},
           simt_threads, shared, stream_of(queue), arrays, Scores(s));
    launch(GPTBENCH_KERNEL(simt_attention_dkdv_kernel<A, Gradient, D_max>),
           dim3{static_cast<unsigned>(ceil_div(s.T_k, Tile::T)), static_cast<unsigned>(s.H_kv),
                sequences},
           simt_threads, shared, stream_of(queue), arrays, Scores(s));
  });
}

}  // namespace

template <class A>
void simt_attention_backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  if (a.shape.keys == KeyBlock::all)
    backward<A, A>(queue, a, delta);
  else
    backward<A, float>(queue, a, delta);
}

template void simt_attention_backward<float>(Queue&, const AttentionBackward&, const float*);
template void simt_attention_backward<bfloat16>(Queue&, const AttentionBackward&, const float*);
template void simt_attention_backward<float16>(Queue&, const AttentionBackward&, const float*);

}  // namespace gptbench::cuda
