// Gradients in two passes. A warp owns 16 rows of what a pass computes, queries of dq or keys of dk
// and dv, and its products of scores come out of the tensor cores in the layout in which they go in
// again: nothing but rows of the other side passes through shared memory.
#include "base/units.h"
#include "cuda/attention/attention.cuh"
#include "cuda/attention/mask_tile.cuh"
#include "cuda/attention/tensor_tile.cuh"

namespace gptbench::cuda {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int own_rows = 16 * warps;  // of a block

// Shared memory, in elements: two operands of own_rows rows, then two of N rows, two tiles of each
// in turn.
template <int D, int N>
struct Layout {
  static constexpr int own = own_rows * D, other = N * D;
  static constexpr int first = 2 * own, end = first + 4 * other;
};

// Numbers of a row that turn a score into a probability, and into its gradient.
struct Row {
  float lse, delta;
};
__device__ inline Row row_of(const float* lse, const float* delta, const Scores& scores, int64_t b,
                             int64_t h, int i) {
  if (i >= scores.T_q) return {0.0f, 0.0f};
  return {lse[scores.lse(b, h, i)] * log2_e, delta[(b * scores.s.H + h) * scores.s.T_q + i]};
}

// A pair of a query and a key: their rows, and by how many positions they differ.
struct Pair {
  int i, j;
  float distance;
};

// Gradient of one score. On entry s is q k, dp is dout v, `factor` the factor of dropout; on return
// s is the dropped probability, dp the gradient of the score. With `plain` the pair is visible and
// pair.distance is known.
template <Extra extra>
__device__ inline void score_gradient(float& s, float& dp, const Scores& scores, const Row& row,
                                      bool plain, const Pair& pair, int length, float slope,
                                      float factor) {
  float bias = 0.0f;
  if (plain) {
    if constexpr (extra != Extra::none) bias = -slope * fabsf(pair.distance);
  } else {
    const int q_position = scores.q_at(pair.i), k_position = scores.k_at(pair.j);
    if (pair.i >= scores.T_q || pair.j >= scores.T_k ||
        !scores.visible(q_position, k_position, length)) {
      s = dp = 0.0f;
      return;
    }
    if constexpr (extra != Extra::none) bias = Scores::bias(slope, q_position, k_position);
  }
  const float p = extra == Extra::none ? exp2_fast(s * (scores.scale * log2_e) - row.lse)
                                       : exp2_fast((s * scores.scale + bias) * log2_e - row.lse);
  if constexpr (extra == Extra::dropout) {
    s = p * factor;
    dp = p * (factor * dp - row.delta);
  } else {
    s = p;
    dp = p * (dp - row.delta);
  }
}

// Whether all pairs of queries [i, i + n_i) and keys [j, j + n_j) are visible, and both stand at
// consecutive positions where a bias asks how far they are apart.
template <Extra extra>
__device__ inline bool plain_tile(const Scores& scores, int i, int n_i, int j, int n_j,
                                  int length) {
  if (i + n_i > scores.T_q || j + n_j > scores.T_k || !scores.all_visible(i, j + n_j, length))
    return false;
  return extra == Extra::none || (Scores::consecutive(scores.q_places, i, n_i) &&
                                  Scores::consecutive(scores.k_places, j, n_j));
}

// Positions of row i and row j apart, of a plain tile.
__device__ inline float distance_of(const Scores& scores, int i, int j) {
  return static_cast<float>(scores.q_at(i) - scores.k_at(j));
}

// dq of own_rows queries of one head: a pass over the keys, N at a time.
template <int D, int N, class A, Extra extra>
__global__ void __launch_bounds__(threads)
    tensor_attention_dq_kernel(BackwardArrays<A, void> a, Scores scores) {
  GPTBENCH_DYNAMIC_SHARED(A, shared);
  using L = Layout<D, N>;
  const AttentionShape& s = scores.s;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int i0 = static_cast<int>(gridDim.x - 1 - blockIdx.x) * own_rows;
  const int64_t h = blockIdx.y, b = blockIdx.z;
  const int i1 = i0 + own_rows < scores.T_q ? i0 + own_rows : scores.T_q;
  const int row0 = i0 + 16 * warp;
  const int length = scores.length(b);
  const float slope = extra != Extra::none ? scores.slope(h) : 0.0f;
  const int64_t kv = scores.kv(b, h / scores.group, 0);
  A* const k_tiles = shared + L::first;
  A* const v_tiles = k_tiles + 2 * L::other;
  const auto load_keys = [&](int j0, int buffer) {
    const int64_t at = kv + j0 * s.kv.row;
    const int rows = scores.T_k - j0;
    load_rows_async<D, N, threads>(k_tiles + buffer * L::other, a.k + at, s.kv.row, rows, s.D);
    load_rows_async<D, N, threads>(v_tiles + buffer * L::other, a.v + at, s.kv.row, rows, s.D);
    commit_copies();
  };
  const auto something_at = [&](int j0) {
    return j0 < scores.T_k && !scores.none_visible(i1, j0, length);
  };

  const Row rows[2] = {row_of(a.lse, a.delta, scores, b, h, row0 + lane / 4),
                       row_of(a.lse, a.delta, scores, b, h, row0 + lane / 4 + 8)};
  float dq[1][D / 8][4] = {};
  load_rows_async<D, own_rows, threads>(shared, a.q + scores.q(b, h, i0), s.q.row, i1 - i0, s.D);
  load_rows_async<D, own_rows, threads>(shared + L::own, a.dout + scores.out(b, h, i0), s.out.row,
                                        i1 - i0, s.D);
  commit_copies();
  if (something_at(0)) load_keys(0, 0);
  int buffer = 0;
  for (int j0 = 0; something_at(j0); j0 += N, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (something_at(j0 + N)) load_keys(j0 + N, buffer ^ 1);
    float p[1][N / 8][4], ds[1][N / 8][4];
    rows_times_rows<D, N, 1>(p, shared, 16 * warp, k_tiles + buffer * L::other);
    rows_times_rows<D, N, 1>(ds, shared + L::own, 16 * warp, v_tiles + buffer * L::other);
    const bool plain = plain_tile<extra>(scores, row0, 16, j0, N, length);
    const float apart =
        distance_of(scores, row0, j0) + static_cast<float>(lane / 4 - 2 * (lane % 4));
    GPTBENCH_UNROLL
    for (int n = 0; n < N / 8; ++n) {
      float factor[4] = {};
      if constexpr (extra == Extra::dropout)
        mask_of_keys_in_columns(factor, scores, b, h, row0, j0 + 8 * n);
      GPTBENCH_UNROLL
      for (int e = 0; e < 4; ++e) {
        const Pair pair{row0 + lane / 4 + e / 2 * 8, j0 + 8 * n + 2 * (lane % 4) + e % 2,
                        apart + static_cast<float>(e / 2 * 8 - 8 * n - e % 2)};
        score_gradient<extra>(p[0][n][e], ds[0][n][e], scores, rows[e / 2], plain, pair, length,
                              slope, factor[e]);
      }
    }
    fragment_times_rows<D, N, 1>(dq, ds, k_tiles + buffer * L::other);
  }
  wait_for_copies<0>();  // of the queries, where there was no tile
  put_rows<D, A>(
      {a.dq, b * a.dq_strides.step + h * s.D, a.dq_strides.row, scores.adds, scores.adds}, row0,
      scores.T_q, s.D, dq[0], scores.scale, scores.scale);
}

// dk and dv of own_rows keys of one key/value head: a pass over the queries, N at a time, of the
// heads that share it. Scores are computed transposed, one row per key.
template <int D, int N, class A, Extra extra>
__global__ void __launch_bounds__(threads)
    tensor_attention_dkdv_kernel(BackwardArrays<A, void> a, Scores scores) {
  GPTBENCH_DYNAMIC_SHARED(A, shared);
  using L = Layout<D, N>;
  const AttentionShape& s = scores.s;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int j0 = static_cast<int>(blockIdx.x) * own_rows;
  const int64_t h_kv = blockIdx.y, b = blockIdx.z;
  const int j1 = j0 + own_rows < scores.T_k ? j0 + own_rows : scores.T_k;
  const int row0 = j0 + 16 * warp;  // of this warp's keys
  const int length = scores.length(b);
  A* const q_tiles = shared + L::first;
  A* const dout_tiles = q_tiles + 2 * L::other;

  // Tiles of queries from the first that sees the first of these keys on; positions ascend.
  const int tiles = (scores.T_q + N - 1) / N;
  int first = 0;
  while (first < tiles &&
         scores.none_visible(first * N + N < scores.T_q ? first * N + N : scores.T_q, j0, length))
    ++first;
  const int tiles_per_head = tiles - first;
  const int steps = tiles_per_head * static_cast<int>(scores.group);
  const auto load_queries = [&](int step, int buffer) {
    const int64_t h = h_kv * scores.group + step / tiles_per_head;
    const int i0 = (first + step % tiles_per_head) * N;
    load_rows_async<D, N, threads>(q_tiles + buffer * L::other, a.q + scores.q(b, h, i0), s.q.row,
                                   scores.T_q - i0, s.D);
    load_rows_async<D, N, threads>(dout_tiles + buffer * L::other, a.dout + scores.out(b, h, i0),
                                   s.out.row, scores.T_q - i0, s.D);
    commit_copies();
  };

  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
  const int64_t kv = scores.kv(b, h_kv, j0);
  load_rows_async<D, own_rows, threads>(shared, a.k + kv, s.kv.row, j1 - j0, s.D);
  load_rows_async<D, own_rows, threads>(shared + L::own, a.v + kv, s.kv.row, j1 - j0, s.D);
  commit_copies();
  if (steps > 0) load_queries(0, 0);
  int buffer = 0;
  for (int step = 0; step < steps; ++step, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (step + 1 < steps) load_queries(step + 1, buffer ^ 1);
    const int64_t h = h_kv * scores.group + step / tiles_per_head;
    const int i0 = (first + step % tiles_per_head) * N;
    const float slope = extra != Extra::none ? scores.slope(h) : 0.0f;
    float p[1][N / 8][4], ds[1][N / 8][4];
    rows_times_rows<D, N, 1>(p, shared, 16 * warp, q_tiles + buffer * L::other);
    rows_times_rows<D, N, 1>(ds, shared + L::own, 16 * warp, dout_tiles + buffer * L::other);
    const bool plain = plain_tile<extra>(scores, i0, N, row0, 16, length);
    const float apart =
        distance_of(scores, i0, row0) + static_cast<float>(2 * (lane % 4) - lane / 4);
    GPTBENCH_UNROLL
    for (int n = 0; n < N / 8; ++n) {
      const int i = i0 + 8 * n + 2 * (lane % 4);
      const Row rows[2] = {row_of(a.lse, a.delta, scores, b, h, i),
                           row_of(a.lse, a.delta, scores, b, h, i + 1)};
      float factor[4] = {};
      if constexpr (extra == Extra::dropout)
        mask_of_keys_in_rows(factor, scores, b, h, i0 + 8 * n, row0);
      GPTBENCH_UNROLL
      for (int e = 0; e < 4; ++e) {
        const Pair pair{i + e % 2, row0 + lane / 4 + e / 2 * 8,
                        apart + static_cast<float>(8 * n + e % 2 - e / 2 * 8)};
        score_gradient<extra>(p[0][n][e], ds[0][n][e], scores, rows[e % 2], plain, pair, length,
                              slope, factor[e]);
      }
    }
    fragment_times_rows<D, N, 1>(dv, p, dout_tiles + buffer * L::other);
    fragment_times_rows<D, N, 1>(dk, ds, q_tiles + buffer * L::other);
  }
  wait_for_copies<0>();  // of the keys, where there was no tile
  const int64_t at = b * a.dkv_strides.step + h_kv * s.D;
  put_rows<D, A>({a.dk, at, a.dkv_strides.row, scores.adds, scores.adds}, row0, scores.T_k, s.D,
                 dk[0], scores.scale, scores.scale);
  put_rows<D, A>({a.dv, at, a.dkv_strides.row, scores.adds, scores.adds}, row0, scores.T_k, s.D,
                 dv[0], 1.0f, 1.0f);
}

template <int D, class A, Extra extra>
void backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  const AttentionShape& s = a.shape;
  const BackwardArrays<A, void> arrays(a, delta);
  // Registers: accumulators of D / 2 floats per thread for dq, D for dk and dv.
  constexpr int N = D == 64 ? 64 : 32;
  constexpr size_t shared = sizeof(A) * Layout<D, N>::end;
  static_assert(shared <= tensor_shared_bytes, "attention_shared_bytes() states the largest");
  const unsigned sequences = static_cast<unsigned>(s.B);
  launch(
      GPTBENCH_KERNEL(tensor_attention_dq_kernel<D, N, A, extra>),
      dim3{static_cast<unsigned>(ceil_div(s.T_q, own_rows)), static_cast<unsigned>(s.H), sequences},
      threads, shared, stream_of(queue), arrays, Scores(s));
  launch(GPTBENCH_KERNEL(tensor_attention_dkdv_kernel<D, N, A, extra>),
         dim3{static_cast<unsigned>(ceil_div(s.T_k, own_rows)), static_cast<unsigned>(s.H_kv),
              sequences},
         threads, shared, stream_of(queue), arrays, Scores(s));
}

template <int D, class A>
void backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  switch (extra_of(a.shape)) {
    case Extra::none:
      return backward<D, A, Extra::none>(queue, a, delta);
    case Extra::bias:
      return backward<D, A, Extra::bias>(queue, a, delta);
    case Extra::dropout:
      return backward<D, A, Extra::dropout>(queue, a, delta);
  }
}

}  // namespace

template <class A>
void tensor_attention_backward(Queue& queue, const AttentionBackward& a, const float* delta) {
  a.shape.D <= 64 ? backward<64, A>(queue, a, delta) : backward<128, A>(queue, a, delta);
}

template void tensor_attention_backward<bfloat16>(Queue&, const AttentionBackward&, const float*);
template void tensor_attention_backward<float16>(Queue&, const AttentionBackward&, const float*);

}  // namespace gptbench::cuda
