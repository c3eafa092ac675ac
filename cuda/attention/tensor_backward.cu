// Gradients in two passes. A warp owns 16 rows of what a pass computes, queries of dq or keys of dk
// and dv, and its products of scores come out of the tensor cores in the layout in which they go in
// again: nothing but rows of the other side passes through shared memory.
#include "base/units.h"
#include "cuda/attention/attention.cuh"
#include "cuda/attention/tensor_tile.cuh"

namespace gptbench::cuda {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int own_rows = 16 * warps;  // of a block

template <class A, class Gradient>
struct Arrays {
  Gradient* dq;
  Gradient* dk;
  Gradient* dv;
  const A* dout;
  const A* q;
  const A* k;
  const A* v;
  const float* lse;
  const float* delta;
  int64_t dq_row, dkv_row, dq_step, dkv_step;
};

// Shared memory, in elements: two operands of own_rows rows, then two of N rows, two tiles of each
// in turn.
template <int D, int N>
struct Layout {
  static constexpr int own = own_rows * D, other = N * D;
  static constexpr int first = 2 * own, end = first + 4 * other;
};

// What a score needs to become a probability, and more for its gradient.
struct Row {
  float lse, delta;
};
__device__ inline Row row_of(const float* lse, const float* delta, const Scores& scores, int64_t b,
                             int64_t h, int64_t i) {
  const AttentionShape& s = scores.s;
  if (i >= s.T_q) return {0.0f, 0.0f};
  return {lse[scores.lse(b, h, i)] * log2_e, delta[(b * s.H + h) * s.T_q + i]};
}

// Of one element, s and dp the products q k and dout v: s becomes the dropped probability, dp the
// gradient of the score. With `all` every pair of the tile is visible.
template <bool extra>
__device__ inline void score_gradient(float& s, float& dp, const Scores& scores, const Row& row,
                                      bool all, int64_t b, int64_t h, int64_t i, int64_t j,
                                      int64_t length, float slope) {
  const AttentionShape& shape = scores.s;
  if (!extra && all) {
    s = exp2_fast(s * (scores.scale * log2_e) - row.lse);
    dp = s * (dp - row.delta);
    return;
  }
  const int64_t q_position = position_of(shape.q_positions, i);
  const int64_t k_position = position_of(shape.k_positions, j);
  if (i >= shape.T_q || j >= shape.T_k || !scores.visible(q_position, k_position, length)) {
    s = dp = 0.0f;
    return;
  }
  const float bias = extra ? Scores::bias(slope, q_position, k_position) : 0.0f;
  const float p = exp2_fast((s * scores.scale + bias) * log2_e - row.lse);
  float factor = 1.0f;
  if (extra && scores.mask.on) factor = scores.dropped(b, h, q_position, k_position);
  s = p * factor;
  dp = p * (factor * dp - row.delta);
}

// dq of own_rows queries of one head: a pass over the keys, N at a time.
template <int D, int N, class A, class Gradient, bool extra>
__global__ void __launch_bounds__(threads)
    tensor_attention_dq_kernel(Arrays<A, Gradient> a, Scores scores) {
  GPTBENCH_DYNAMIC_SHARED(A, shared);
  using L = Layout<D, N>;
  const AttentionShape& s = scores.s;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t i0 = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * own_rows;
  const int64_t h = blockIdx.y, b = blockIdx.z;
  const int64_t i1 = i0 + own_rows < s.T_q ? i0 + own_rows : s.T_q;
  const int64_t row0 = i0 + 16 * warp;
  const int64_t length = scores.length(b);
  const float slope = extra ? scores.slope(h) : 0.0f;
  const int64_t kv = scores.kv(b, h / scores.group, 0);
  A* const k_tiles = shared + L::first;
  A* const v_tiles = k_tiles + 2 * L::other;
  const auto load_keys = [&](int64_t j0, int buffer) {
    const int64_t at = kv + j0 * s.kv_row, rows = s.T_k - j0;
    load_rows_async<D, N, threads>(k_tiles + buffer * L::other, a.k + at, s.kv_row, rows, s.D);
    load_rows_async<D, N, threads>(v_tiles + buffer * L::other, a.v + at, s.kv_row, rows, s.D);
    commit_copies();
  };
  const auto something_at = [&](int64_t j0) {
    return j0 < s.T_k && !scores.none_visible(i1, j0, length);
  };

  const Row rows[2] = {row_of(a.lse, a.delta, scores, b, h, row0 + lane / 4),
                       row_of(a.lse, a.delta, scores, b, h, row0 + lane / 4 + 8)};
  float dq[1][D / 8][4] = {};
  load_rows_async<D, own_rows, threads>(shared, a.q + scores.q(b, h, i0), s.q_row, i1 - i0, s.D);
  load_rows_async<D, own_rows, threads>(shared + L::own, a.dout + scores.out(b, h, i0), s.out_row,
                                        i1 - i0, s.D);
  commit_copies();
  if (something_at(0)) load_keys(0, 0);
  int buffer = 0;
  for (int64_t j0 = 0; something_at(j0); j0 += N, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (something_at(j0 + N)) load_keys(j0 + N, buffer ^ 1);
    float p[1][N / 8][4], ds[1][N / 8][4];
    rows_times_rows<D, N, 1>(p, shared, 16 * warp, k_tiles + buffer * L::other);
    rows_times_rows<D, N, 1>(ds, shared + L::own, 16 * warp, v_tiles + buffer * L::other);
    const bool all =
        row0 + 16 <= s.T_q && j0 + N <= s.T_k && scores.all_visible(row0, j0 + N, length);
    GPTBENCH_UNROLL
    for (int n = 0; n < N / 8; ++n) {
      GPTBENCH_UNROLL
      for (int e = 0; e < 4; ++e)
        score_gradient<extra>(p[0][n][e], ds[0][n][e], scores, rows[e / 2], all, b, h,
                              row0 + lane / 4 + e / 2 * 8, j0 + 8 * n + 2 * (lane % 4) + e % 2,
                              length, slope);
    }
    fragment_times_rows<D, N, 1>(dq, ds, k_tiles + buffer * L::other);
  }
  wait_for_copies<0>();  // of the queries, where there was no tile
  put_rows<D>(a.dq + b * a.dq_step + h * s.D, a.dq_row, row0, s.T_q, s.D, dq[0], scores.scale,
              scores.scale, scores.adds);
}

// dk and dv of own_rows keys of one key/value head: a pass over the queries, N at a time, of the
// heads that share it. Scores are computed transposed, a row a key.
template <int D, int N, class A, class Gradient, bool extra>
__global__ void __launch_bounds__(threads)
    tensor_attention_dkdv_kernel(Arrays<A, Gradient> a, Scores scores) {
  GPTBENCH_DYNAMIC_SHARED(A, shared);
  using L = Layout<D, N>;
  const AttentionShape& s = scores.s;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t j0 = static_cast<int64_t>(blockIdx.x) * own_rows;
  const int64_t h_kv = blockIdx.y, b = blockIdx.z;
  const int64_t j1 = j0 + own_rows < s.T_k ? j0 + own_rows : s.T_k;
  const int64_t row0 = j0 + 16 * warp;  // of this warp's keys
  const int64_t length = scores.length(b);
  A* const q_tiles = shared + L::first;
  A* const dout_tiles = q_tiles + 2 * L::other;

  // Tiles of queries from the first that sees the first of these keys on; positions ascend.
  const int64_t tiles = (s.T_q + N - 1) / N;
  int64_t first = 0;
  while (first < tiles &&
         scores.none_visible(first * N + N < s.T_q ? first * N + N : s.T_q, j0, length))
    ++first;
  const int64_t tiles_a_head = tiles - first;
  const int64_t steps = tiles_a_head * scores.group;
  const auto load_queries = [&](int64_t step, int buffer) {
    const int64_t h = h_kv * scores.group + step / tiles_a_head;
    const int64_t i0 = (first + step % tiles_a_head) * N;
    load_rows_async<D, N, threads>(q_tiles + buffer * L::other, a.q + scores.q(b, h, i0), s.q_row,
                                   s.T_q - i0, s.D);
    load_rows_async<D, N, threads>(dout_tiles + buffer * L::other, a.dout + scores.out(b, h, i0),
                                   s.out_row, s.T_q - i0, s.D);
    commit_copies();
  };

  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
  const int64_t kv = scores.kv(b, h_kv, j0);
  load_rows_async<D, own_rows, threads>(shared, a.k + kv, s.kv_row, j1 - j0, s.D);
  load_rows_async<D, own_rows, threads>(shared + L::own, a.v + kv, s.kv_row, j1 - j0, s.D);
  commit_copies();
  if (steps > 0) load_queries(0, 0);
  int buffer = 0;
  for (int64_t step = 0; step < steps; ++step, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (step + 1 < steps) load_queries(step + 1, buffer ^ 1);
    const int64_t h = h_kv * scores.group + step / tiles_a_head;
    const int64_t i0 = (first + step % tiles_a_head) * N;
    const float slope = extra ? scores.slope(h) : 0.0f;
    float p[1][N / 8][4], ds[1][N / 8][4];
    rows_times_rows<D, N, 1>(p, shared, 16 * warp, q_tiles + buffer * L::other);
    rows_times_rows<D, N, 1>(ds, shared + L::own, 16 * warp, dout_tiles + buffer * L::other);
    const bool all =
        i0 + N <= s.T_q && row0 + 16 <= s.T_k && scores.all_visible(i0, row0 + 16, length);
    GPTBENCH_UNROLL
    for (int n = 0; n < N / 8; ++n) {
      const int64_t i = i0 + 8 * n + 2 * (lane % 4);
      const Row rows[2] = {row_of(a.lse, a.delta, scores, b, h, i),
                           row_of(a.lse, a.delta, scores, b, h, i + 1)};
      GPTBENCH_UNROLL
      for (int e = 0; e < 4; ++e)
        score_gradient<extra>(p[0][n][e], ds[0][n][e], scores, rows[e % 2], all, b, h, i + e % 2,
                              row0 + lane / 4 + e / 2 * 8, length, slope);
    }
    fragment_times_rows<D, N, 1>(dv, p, dout_tiles + buffer * L::other);
    fragment_times_rows<D, N, 1>(dk, ds, q_tiles + buffer * L::other);
  }
  wait_for_copies<0>();  // of the keys, where there was no tile
  const int64_t at = b * a.dkv_step + h_kv * s.D;
  put_rows<D>(a.dk + at, a.dkv_row, row0, s.T_k, s.D, dk[0], scores.scale, scores.scale,
              scores.adds);
  put_rows<D>(a.dv + at, a.dkv_row, row0, s.T_k, s.D, dv[0], 1.0f, 1.0f, scores.adds);
}

template <int D, class A, class Gradient, bool extra>
void backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  const AttentionShape& s = a.shape;
  const Arrays<A, Gradient> arrays{static_cast<Gradient*>(a.dq),
                                   static_cast<Gradient*>(a.dk),
                                   static_cast<Gradient*>(a.dv),
                                   static_cast<const A*>(a.dout),
                                   static_cast<const A*>(a.q),
                                   static_cast<const A*>(a.k),
                                   static_cast<const A*>(a.v),
                                   static_cast<const float*>(a.lse),
                                   delta,
                                   a.dq_row,
                                   a.dkv_row,
                                   a.dq_step,
                                   a.dkv_step};
  // Registers: accumulators of D / 2 floats a thread for dq, D for dk and dv.
  constexpr int dq_keys = 64, dkdv_queries = D == 64 ? 64 : 32;
  const unsigned sequences = static_cast<unsigned>(s.B);
  launch(
      GPTBENCH_KERNEL(tensor_attention_dq_kernel<D, dq_keys, A, Gradient, extra>),
      dim3{static_cast<unsigned>(ceil_div(s.T_q, own_rows)), static_cast<unsigned>(s.H), sequences},
      threads, sizeof(A) * Layout<D, dq_keys>::end, stream_of(queue), arrays, Scores(s));
  launch(GPTBENCH_KERNEL(tensor_attention_dkdv_kernel<D, dkdv_queries, A, Gradient, extra>),
         dim3{static_cast<unsigned>(ceil_div(s.T_k, own_rows)), static_cast<unsigned>(s.H_kv),
              sequences},
         threads, sizeof(A) * Layout<D, dkdv_queries>::end, stream_of(queue), arrays, Scores(s));
}

template <int D, class A, class Gradient>
void backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  if (a.shape.alibi || a.shape.dropout.rate > 0.0)
    backward<D, A, Gradient, true>(queue, a, delta);
  else
    backward<D, A, Gradient, false>(queue, a, delta);
}

}  // namespace

template <class A>
void tensor_attention_backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  const bool whole = a.shape.keys == KeyBlock::all;
  if (a.shape.D <= 64)
    whole ? backward<64, A, A>(queue, a, delta) : backward<64, A, float>(queue, a, delta);
  else
    whole ? backward<128, A, A>(queue, a, delta) : backward<128, A, float>(queue, a, delta);
}

template void tensor_attention_backward<bfloat16>(Queue&, const AttentionBackward&, const float*);
template void tensor_attention_backward<float16>(Queue&, const AttentionBackward&, const float*);

}  // namespace gptbench::cuda
