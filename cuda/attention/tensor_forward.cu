#include "base/units.h"
#include "cuda/attention/attention.cuh"
#include "cuda/attention/mask_tile.cuh"
#include "cuda/attention/tensor_tile.cuh"

namespace gptbench::cuda {
namespace {

constexpr int warps = 4, threads = 32 * warps;
constexpr int M = 2;                    // fragments of 16 queries per warp
constexpr int q_rows = 16 * M * warps;  // queries of a block

// Keys of a tile: as many as leave room for the accumulators, D M / 2 registers.
template <int D>
constexpr int keys_of = D == 64 ? 64 : 32;

// Shared memory, in elements: queries, then keys and values, two tiles of each in turn.
template <int D>
struct Layout {
  static constexpr int k_rows = keys_of<D>;
  static constexpr int q = 0, k = q_rows * D, v = k + 2 * k_rows * D, end = v + 2 * k_rows * D;
};

// Adjusts scores where a tile has hidden keys, or scores have a bias: s = scale s + bias
// with `biased`, -inf where hidden.
template <bool biased, int k_rows>
__device__ inline void adjust(float (&c)[M][k_rows / 8][4], const Scores& scores, int row0, int j0,
                              int length, float slope) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    GPTBENCH_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int q_position = scores.q_at(row0 + 16 * m + lane / 4 + e / 2 * 8);
      GPTBENCH_UNROLL
      for (int n = 0; n < k_rows / 8; ++n) {
        const int key = j0 + 8 * n + 2 * (lane % 4) + e % 2;
        const int k_position = scores.k_at(key);
        float& x = c[m][n][e];
        if constexpr (biased) x = x * scores.scale + Scores::bias(slope, q_position, k_position);
        if (key >= scores.T_k || !scores.visible(q_position, k_position, length)) x = -HUGE_VALF;
      }
    }
  }
}

// The same where no key is hidden and rows and keys stand at consecutive positions.
template <int k_rows>
__device__ inline void add_bias(float (&c)[M][k_rows / 8][4], const Scores& scores, int row0,
                                int j0, float slope) {
  const int lane = own_thread() % 32;
  const float first =
      static_cast<float>(scores.q_at(row0) - scores.k_at(j0) + lane / 4 - 2 * (lane % 4));
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    GPTBENCH_UNROLL
    for (int n = 0; n < k_rows / 8; ++n) {
      GPTBENCH_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float distance = first + static_cast<float>(16 * m + e / 2 * 8 - 8 * n - e % 2);
        c[m][n][e] = c[m][n][e] * scores.scale - slope * fabsf(distance);
      }
    }
  }
}

template <int k_rows>
__device__ inline void drop(float (&p)[M][k_rows / 8][4], const Scores& scores, int64_t b,
                            int64_t h, int row0, int j0) {
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    GPTBENCH_UNROLL
    for (int n = 0; n < k_rows / 8; ++n) {
      float factor[4];
      mask_of_keys_in_columns(factor, scores, b, h, row0 + 16 * m, j0 + 8 * n);
      GPTBENCH_UNROLL
      for (int e = 0; e < 4; ++e) p[m][n][e] *= factor[e];
    }
  }
}

// A block computes q_rows queries of one head.
template <int D, class A, Extra extra>
__global__ void __launch_bounds__(threads)
    tensor_attention_forward_kernel(ForwardArrays<A, void> a, Scores scores) {
  GPTBENCH_DYNAMIC_SHARED(A, shared);
  using L = Layout<D>;
  constexpr int k_rows = L::k_rows;
  const AttentionShape& s = scores.s;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  // The last tiles, which under a causal mask have most to do, start first.
  const int i0 = static_cast<int>(gridDim.x - 1 - blockIdx.x) * q_rows;
  const int64_t h = blockIdx.y, b = blockIdx.z;
  const int i1 = i0 + q_rows < scores.T_q ? i0 + q_rows : scores.T_q;
  const int row0 = i0 + 16 * M * warp;  // of this warp
  const int length = scores.length(b);
  constexpr bool biased = extra != Extra::none;
  const float slope = biased ? scores.slope(h) : 0.0f;
  // A score times c is the exponent of 2.
  const float c = biased ? log2_e : scores.scale * log2_e;

  const int64_t kv = scores.kv(b, h / scores.group, 0);
  const auto load_keys = [&](int j0, int buffer) {
    const int64_t at = kv + j0 * s.kv.row;
    const int rows = scores.T_k - j0;
    load_rows_async<D, k_rows, threads>(shared + L::k + buffer * k_rows * D, a.k + at, s.kv.row,
                                        rows, s.D);
    load_rows_async<D, k_rows, threads>(shared + L::v + buffer * k_rows * D, a.v + at, s.kv.row,
                                        rows, s.D);
    commit_copies();
  };
  const auto something_at = [&](int j0) {
    return j0 < scores.T_k && !scores.none_visible(i1, j0, length);
  };

  float acc[M][D / 8][4] = {};
  float max[M][2], sum[M][2];  // of rows lane / 4 and + 8; a sum over this lane's columns
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    GPTBENCH_UNROLL
    for (int half = 0; half < 2; ++half) {
      max[m][half] = -HUGE_VALF;
      sum[m][half] = 0.0f;
      const int row = row0 + 16 * m + lane / 4 + 8 * half;
      if (s.keys != KeyBlock::further || row >= scores.T_q) continue;
      const float before = a.lse[scores.lse(b, h, row)];
      if (before == -HUGE_VALF) continue;
      max[m][half] = before * (log2_e / c);
      if (lane % 4 == 0) sum[m][half] = 1.0f;
      GPTBENCH_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        if (8 * n >= s.D) continue;
        const float* const out =
            static_cast<const float*>(a.out) + scores.out(b, h, row) + 8 * n + 2 * (lane % 4);
        acc[m][n][2 * half] = out[0];
        acc[m][n][2 * half + 1] = out[1];
      }
    }
  }

  load_rows_async<D, q_rows, threads>(shared + L::q, a.q + scores.q(b, h, i0), s.q.row, i1 - i0,
                                      s.D);
  commit_copies();
  if (something_at(0)) load_keys(0, 0);
  int buffer = 0;
  for (int j0 = 0; something_at(j0); j0 += k_rows, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (something_at(j0 + k_rows)) load_keys(j0 + k_rows, buffer ^ 1);

    float p[M][k_rows / 8][4];
    rows_times_rows<D, k_rows, M>(p, shared + L::q, 16 * M * warp,
                                  shared + L::k + buffer * k_rows * D);
    const bool hidden = j0 + k_rows > scores.T_k || !scores.all_visible(row0, j0 + k_rows, length);
    if (hidden || (biased && !(Scores::consecutive(scores.q_places, row0, 16 * M) &&
                               Scores::consecutive(scores.k_places, j0, k_rows))))
      adjust<biased, k_rows>(p, scores, row0, j0, length, slope);
    else if constexpr (biased)
      add_bias<k_rows>(p, scores, row0, j0, slope);

    GPTBENCH_UNROLL
    for (int m = 0; m < M; ++m) {
      GPTBENCH_UNROLL
      for (int half = 0; half < 2; ++half) {
        float top = max[m][half];
        GPTBENCH_UNROLL
        for (int n = 0; n < k_rows / 8; ++n) {
          GPTBENCH_UNROLL
          for (int e = 2 * half; e < 2 * half + 2; ++e) top = p[m][n][e] > top ? p[m][n][e] : top;
        }
        top = quad_max(top);
        const float shift = top == -HUGE_VALF ? 0.0f : top * c;
        const float kept = exp2_fast(max[m][half] * c - shift);
        float row = 0.0f;
        GPTBENCH_UNROLL
        for (int n = 0; n < k_rows / 8; ++n) {
          GPTBENCH_UNROLL
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            p[m][n][e] = exp2_fast(p[m][n][e] * c - shift);
            row += p[m][n][e];
          }
        }
        max[m][half] = top;
        sum[m][half] = sum[m][half] * kept + row;
        GPTBENCH_UNROLL
        for (int n = 0; n < D / 8; ++n) {
          acc[m][n][2 * half] *= kept;
          acc[m][n][2 * half + 1] *= kept;
        }
      }
    }
    if constexpr (extra == Extra::dropout) drop<k_rows>(p, scores, b, h, row0, j0);
    fragment_times_rows<D, k_rows, M>(acc, p, shared + L::v + buffer * k_rows * D);
  }
  wait_for_copies<0>();  // of the queries, where there was no tile

  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    float inverse[2];
    GPTBENCH_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float all = quad_sum(sum[m][half]);
      const bool none = all == 0.0f;
      inverse[half] = none ? 0.0f : 1.0f / all;
      const int row = row0 + 16 * m + lane / 4 + 8 * half;
      if (lane % 4 == 0 && row < scores.T_q)
        a.lse[scores.lse(b, h, row)] = none ? -HUGE_VALF : max[m][half] * c * ln_2 + logf(all);
    }
    put_rows<D, A>({a.out, scores.out(b, h, 0), s.out.row, scores.adds, false}, row0 + 16 * m,
                   scores.T_q, s.D, acc[m], inverse[0], inverse[1]);
  }
}

template <int D, class A, Extra extra>
void forward(Queue& queue, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  const ForwardArrays<A, void> arrays(a);
  const dim3 grid{static_cast<unsigned>(ceil_div(s.T_q, q_rows)), static_cast<unsigned>(s.H),
                  static_cast<unsigned>(s.B)};
  launch(GPTBENCH_KERNEL(tensor_attention_forward_kernel<D, A, extra>), grid, threads,
         sizeof(A) * Layout<D>::end, stream_of(queue), arrays, Scores(s));
}

template <int D, class A>
void forward(Queue& queue, const AttentionForward& a) {
  switch (extra_of(a.shape)) {
    case Extra::none:
      return forward<D, A, Extra::none>(queue, a);
    case Extra::bias:
      return forward<D, A, Extra::bias>(queue, a);
    case Extra::dropout:
      return forward<D, A, Extra::dropout>(queue, a);
  }
}

}  // namespace

template <class A>
void tensor_attention_forward(Queue& queue, const AttentionForward& a) {
  a.shape.D <= 64 ? forward<64, A>(queue, a) : forward<128, A>(queue, a);
}

template void tensor_attention_forward<bfloat16>(Queue&, const AttentionForward&);
template void tensor_attention_forward<float16>(Queue&, const AttentionForward&);

}  // namespace gptbench::cuda
