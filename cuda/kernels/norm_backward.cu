// Gradients of LayerNorm and RMSNorm: 4 R C elements of A (dy, x, dx read and written) where
// scratch memory holds the sums of chunks of rows, 6 R C without. Sums of dx: one R C more without
// scratch memory, and for C > 8192.
#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/norm.cuh"

namespace gptbench::cuda {
namespace {

template <class A>
struct Rows {
  A* dx;
  const A* dy;
  const A* x;
  const A* gamma;
  const float* mean;  // null: RMSNorm
  const float* rstd;
  int64_t R, C;

  explicit Rows(const LayerNormBackward& a)
      : dx(static_cast<A*>(a.dx)),
        dy(static_cast<const A*>(a.dy)),
        x(static_cast<const A*>(a.x)),
        gamma(static_cast<const A*>(a.gamma)),
        mean(static_cast<const float*>(a.mean)),
        rstd(static_cast<const float*>(a.rstd)),
        R(a.R),
        C(a.C) {}
};

// Columns that are summed: dy n and, for LayerNorm, dy, then dx on request.
template <bool centred, bool sums_dx>
constexpr int num_sums = (centred ? 2 : 1) + (sums_dx ? 1 : 0);

// Whether a thread has registers for its sums beside x, dy and dx as they are stored. Where it has
// not (C > 8192), these are read when they are used, x and dy a second time from the cache, and dx
// is summed apart.
template <class Layout>
constexpr bool holds_row = Layout::vectors* Layout::warps < 64;

// Blocks whose registers a multiprocessor of 65536 holds: per vector of a thread its sums and, as
// they are stored, x, dy and dx.
template <class A, class Layout, int M>
constexpr int resident_blocks =
    std::max(1, 65536 / (Layout::threads * Layout::rows *
                         (44 + Layout::vectors * (vector_width * M + 6 * int{sizeof(A)}))));

// dx += rstd (g - mean_C(g) - n mean_C(g n)), n = (x - mean) rstd, g = dy gamma; RMSNorm leaves
// mean_C(g) out. Where `partial` is given, the sums over this block's rows are assigned to
// partial[block][m][C].
template <class A, bool centred, bool sums_dx, int V, int W>
__global__ void __launch_bounds__(32 * W * RowLayout<V, W>::rows,
                                  (resident_blocks<A, RowLayout<V, W>, num_sums<centred, sums_dx>>))
    normalization_backward_kernel(Rows<A> a, float* partial) {
  using Layout = RowLayout<V, W>;
  constexpr int M = num_sums<centred, sums_dx>;
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % Layout::threads;
  const int row_in_block = static_cast<int>(threadIdx.x) / Layout::threads;
  const float count = static_cast<float>(a.C);
  float sums[M][V][vector_width] = {};
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * Layout::rows + row_in_block; r < a.R;
       r += static_cast<int64_t>(gridDim.x) * Layout::rows) {
    const float mean = centred ? a.mean[r] : 0.0f, rstd = a.rstd[r];
    Stored<A> x[V] = {}, dy[V] = {}, before[V] = {};
    const auto read = [&](int v, int64_t c) {
      x[v] = load_last(a.x + r * a.C + c);
      dy[v] = load_last(a.dy + r * a.C + c);
    };
    GPTBENCH_UNROLL
    for (int v = 0; v < (holds_row<Layout> ? V : 0); ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      if (c >= a.C) continue;
      read(v, c);
      before[v] = load_last(a.dx + r * a.C + c);
    }
    float means[2] = {};  // of g n, and of g
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      if (c >= a.C) continue;
      if constexpr (!holds_row<Layout>) read(v, c);
      float n[vector_width], g[vector_width], gamma[vector_width];
      values_of<A>(n, x[v]);
      values_of<A>(g, dy[v]);
      load<vector_width>(gamma, a.gamma + c);
      GPTBENCH_UNROLL
      for (int j = 0; j < vector_width; ++j) {
        n[j] = (n[j] - mean) * rstd;
        sums[0][v][j] += g[j] * n[j];
        if constexpr (centred) sums[1][v][j] += g[j];
        g[j] *= gamma[j];
        means[0] += g[j] * n[j];
        means[1] += g[j];
      }
    }
    group_sum<W>(means, shared);
    const float mean_gn = means[0] / count, mean_g = centred ? means[1] / count : 0.0f;
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      if (c >= a.C) continue;
      if constexpr (holds_row<Layout>) {
        forget_values(x[v]);
        forget_values(dy[v]);
      } else {
        read(v, c);
        before[v] = load_last(a.dx + r * a.C + c);
      }
      float n[vector_width], g[vector_width], gamma[vector_width], dx[vector_width];
      values_of<A>(n, x[v]);
      values_of<A>(g, dy[v]);
      values_of<A>(dx, before[v]);
      load<vector_width>(gamma, a.gamma + c);
      GPTBENCH_UNROLL
      for (int j = 0; j < vector_width; ++j) {
        n[j] = (n[j] - mean) * rstd;
        dx[j] += rstd * (g[j] * gamma[j] - mean_g - n[j] * mean_gn);
      }
      store<vector_width>(a.dx + r * a.C + c, dx);
      if constexpr (sums_dx) {
        round_to<A>(dx);
        GPTBENCH_UNROLL
        for (int j = 0; j < vector_width; ++j) sums[M - 1][v][j] += dx[j];
      }
    }
  }
  if (partial == nullptr) return;
  float* const mine = partial + static_cast<int64_t>(blockIdx.x) * M * a.C;
  if constexpr (W > 1) {
    GPTBENCH_UNROLL
    for (int m = 0; m < M; ++m) {
      GPTBENCH_UNROLL
      for (int v = 0; v < V; ++v) {
        const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
        if (c < a.C) store<vector_width>(mine + m * a.C + c, sums[m][v]);
      }
    }
  } else {  // warps of other rows have sums of the same columns
    GPTBENCH_UNROLL
    for (int m = 0; m < M; ++m) {
      __syncthreads();
      GPTBENCH_UNROLL
      for (int v = 0; v < V; ++v) {
        const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
        if (c < a.C) store<vector_width>(shared + row_in_block * a.C + c, sums[m][v]);
      }
      __syncthreads();
      for (int64_t c = threadIdx.x; c < a.C; c += Layout::threads * Layout::rows) {
        float sum = 0.0f;
        for (int row = 0; row < Layout::rows; ++row) sum += shared[row * a.C + c];
        mine[m * a.C + c] = sum;
      }
    }
  }
}

// dx alone; any C, any alignment; one block per row.
template <class A, bool centred>
__global__ void normalization_backward_wide_kernel(Rows<A> a) {
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  const float count = static_cast<float>(a.C);
  for (int64_t r = blockIdx.x; r < a.R; r += gridDim.x) {
    const float mean = centred ? a.mean[r] : 0.0f, rstd = a.rstd[r];
    float means[2] = {};
    for (int64_t c = threadIdx.x; c < a.C; c += wide_threads) {
      const float n = (to_float(a.x[r * a.C + c]) - mean) * rstd;
      const float g = to_float(a.dy[r * a.C + c]) * to_float(a.gamma[c]);
      means[0] += g * n;
      means[1] += g;
    }
    group_sum<wide_warps>(means, shared);
    const float mean_gn = means[0] / count, mean_g = centred ? means[1] / count : 0.0f;
    for (int64_t c = threadIdx.x; c < a.C; c += wide_threads) {
      const float n = (to_float(a.x[r * a.C + c]) - mean) * rstd;
      const float g = to_float(a.dy[r * a.C + c]) * to_float(a.gamma[c]);
      A* const dx = a.dx + r * a.C + c;
      *dx = from_float<A>(to_float(*dx) + rstd * (g - mean_g - n * mean_gn));
    }
  }
}

// dy n and, for LayerNorm, dy, as columns to be summed.
template <class A, bool centred>
struct GradientColumns {
  const A* dy;
  const A* x;
  const float* mean;
  const float* rstd;
  int64_t C;

  template <int N>
  __device__ void at(float (&v)[centred ? 2 : 1][N], int64_t r, int64_t c) const {
    float g[N], n[N];
    load<N>(g, dy + r * C + c);
    load<N>(n, x + r * C + c);
    const float shift = centred ? mean[r] : 0.0f, scale = rstd[r];
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) {
      v[0][j] = g[j] * ((n[j] - shift) * scale);
      if constexpr (centred) v[1][j] = g[j];
    }
  }
};

// As many blocks as an H200 holds at once write sums, on every device: the sums have the same bits.
constexpr int64_t multiprocessors_of_h200 = 132;

template <int N, int M>
ColumnSums<N> first_of(const ColumnSums<M>& all) {
  ColumnSums<N> some;
  std::copy_n(all.out, N, some.out);
  return some;
}

template <class A, bool centred, bool sums_dx>
void backward(Queue& queue, const Rows<A>& a, const ColumnSums<num_sums<centred, sums_dx>>& out,
              const Workspace& workspace) {
  if (a.R == 0) return;
  const bool aligned = rows_are_aligned(a.C, {{a.dx, sizeof(A), a.C},
                                              {a.dy, sizeof(A), a.C},
                                              {a.x, sizeof(A), a.C},
                                              {a.gamma, sizeof(A), 0}});
  bool summed = false, dx_summed = false;
  with_row_layout(
      a.C, aligned,
      [&](auto layout) {
        using L = decltype(layout);
        constexpr bool dx_too = sums_dx && holds_row<L>;
        constexpr int M = num_sums<centred, dx_too>;
        const int64_t resident = multiprocessors_of_h200 * resident_blocks<A, L, M>;
        const int64_t chunks =
            chunks_that_fit(workspace, std::min(resident, ceil_div(a.R, 4 * L::rows)), M, a.C);
        summed = chunks > 1;
        dx_summed = summed && dx_too;
        float* const partial = summed ? static_cast<float*>(workspace.data) : nullptr;
        const dim3 grid{
            summed ? static_cast<unsigned>(chunks) : blocks_for(ceil_div(a.R, L::rows), 8), 1, 1};
        const size_t shared = sizeof(float) * (L::warps > 1 ? size_t{2} * L::warps
                                                            : static_cast<size_t>(L::rows) *
                                                                  static_cast<size_t>(a.C));
        launch(GPTBENCH_KERNEL(
                   normalization_backward_kernel<A, centred, dx_too, L::vectors, L::warps>),
               grid, L::threads * L::rows, shared, stream_of(queue), a, partial);
        if (summed) sum_partials<M>(queue, first_of<M>(out), partial, chunks, a.C);
      },
      [&] {
        launch(GPTBENCH_KERNEL(normalization_backward_wide_kernel<A, centred>),
               dim3{blocks_for(a.R, 16), 1, 1}, wide_threads, sizeof(float) * 2 * wide_warps,
               stream_of(queue), a);
      });
  constexpr int of_parameters = num_sums<centred, false>;
  if (!summed)
    column_sum<of_parameters>(queue, GradientColumns<A, centred>{a.dy, a.x, a.mean, a.rstd, a.C},
                              first_of<of_parameters>(out), a.R, a.C, workspace, aligned);
  if constexpr (sums_dx)
    if (!dx_summed) bias_backward<A>(queue, {out.out[of_parameters], a.dx, a.R, a.C, workspace});
}

}  // namespace

template <class A>
void layernorm_backward(Queue& queue, const LayerNormBackward& a) {
  const Rows<A> rows(a);
  float* const dgamma = static_cast<float*>(a.dgamma);
  float* const dbeta = static_cast<float*>(a.dbeta);
  if (a.column_sums != nullptr)
    backward<A, true, true>(queue, rows, {{dgamma, dbeta, static_cast<float*>(a.column_sums)}},
                            a.workspace);
  else
    backward<A, true, false>(queue, rows, {{dgamma, dbeta}}, a.workspace);
}

template <class A>
void rmsnorm_backward(Queue& queue, const RmsNormBackward& a) {
  backward<A, false, false>(queue, Rows<A>(as_layernorm(a)), {{static_cast<float*>(a.dgamma)}},
                            a.workspace);
}

GPTBENCH_CUDA_KERNEL(layernorm_backward, LayerNormBackward)
GPTBENCH_CUDA_KERNEL(rmsnorm_backward, RmsNormBackward)

}  // namespace gptbench::cuda
