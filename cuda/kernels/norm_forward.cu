// LayerNorm and RMSNorm: 2 R C elements of A, of y a byte each where an fp8 copy takes its place; 2
// R C more where the input is the sum of a residual and a branch, formed in the same pass.
#include "cuda/kernels/dropout.cuh"
#include "cuda/kernels/fp8.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/norm.cuh"

namespace gptbench::cuda {
namespace {

// Without beta where it is null.
template <class A>
struct Rows {
  A* y;
  float* mean;  // null: RMSNorm, which subtracts none
  float* rstd;
  const A* x;
  int64_t R, C;
  float epsilon;
  Fp8Copy fp8;  // without it y is not null
  // Where not null x is the residual, and this is what is normalised: x + dropout(branch).
  A* sum;
  const A* branch;
  DropoutMask mask;
  GlobalRows rows;

  explicit Rows(const LayerNormForward& a)
      : y(static_cast<A*>(a.y)),
        mean(static_cast<float*>(a.mean)),
        rstd(static_cast<float*>(a.rstd)),
        x(static_cast<const A*>(a.residual.sum != nullptr ? a.residual.residual : a.x)),
        R(a.R),
        C(a.C),
        epsilon(static_cast<float>(a.epsilon)),
        fp8(a.fp8),
        sum(static_cast<A*>(a.residual.sum)),
        branch(static_cast<const A*>(a.residual.branch)),
        mask(a.residual.dropout),
        rows(a.residual.rows) {}
};

// x, elements c, c + 1, ... of row r of the residual, becomes its sum with those of the branch, as
// it is stored.
template <int N, class A>
__device__ inline void form_sum(float (&x)[N], float (&branch)[N], const Rows<A>& a, int64_t r,
                                int64_t c) {
  if (a.mask.on) {
    float factor[N];
    a.mask.template factors<N>(factor, global_row(a.rows, r) * a.C + c);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) branch[j] *= factor[j];
  }
  GPTBENCH_UNROLL
  for (int j = 0; j < N; ++j) x[j] += branch[j];
  store<N>(a.sum + r * a.C + c, x);
  round_to<A>(x);
}

template <class A, int V, int W>
__global__ void __launch_bounds__(32 * W * RowLayout<V, W>::rows)
    normalization_forward_kernel(Rows<A> a, const A* __restrict__ gamma,
                                 const A* __restrict__ beta) {
  using Layout = RowLayout<V, W>;
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % Layout::threads;
  const int row_in_block = static_cast<int>(threadIdx.x) / Layout::threads;
  const float count = static_cast<float>(a.C);
  uint8_t* const copy = static_cast<uint8_t*>(a.fp8.y);
  const float scale = copy != nullptr ? a.fp8.scale[0] : 1.0f;
  int largest = 0;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * Layout::rows + row_in_block; r < a.R;
       r += static_cast<int64_t>(gridDim.x) * Layout::rows) {
    float x[V][vector_width] = {};
    float mean[1] = {}, square[1] = {};
    // All loads are in flight before the first sum is stored, which they might depend on.
    Stored<A> first[V] = {}, second[V] = {};
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      if (c >= a.C) continue;
      first[v] = load_last(a.x + r * a.C + c);
      if (a.sum != nullptr) second[v] = load_last(a.branch + r * a.C + c);
    }
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      if (c >= a.C) continue;
      values_of<A>(x[v], first[v]);
      if (a.sum == nullptr) continue;
      float branch[vector_width];
      values_of<A>(branch, second[v]);
      form_sum<vector_width>(x[v], branch, a, r, c);
    }
    if (a.mean != nullptr) {
      GPTBENCH_UNROLL
      for (int v = 0; v < V; ++v) {
        GPTBENCH_UNROLL
        for (int j = 0; j < vector_width; ++j) mean[0] += x[v][j];
      }
      group_sum<W>(mean, shared);
      mean[0] /= count;
    }
    // In flight during the second sum, and before y is stored.
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      first[v] = second[v] = {};
      if (c < a.C) first[v] = load_shared_by_rows(gamma + c);
      if (c < a.C && beta != nullptr) second[v] = load_shared_by_rows(beta + c);
    }
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      if ((v * Layout::threads + lane) * vector_width >= a.C) continue;
      GPTBENCH_UNROLL
      for (int j = 0; j < vector_width; ++j) {
        const float deviation = x[v][j] - mean[0];
        square[0] += deviation * deviation;
      }
    }
    group_sum<W>(square, shared);
    const float rstd = 1.0f / sqrtf(square[0] / count + a.epsilon);
    GPTBENCH_UNROLL
    for (int v = 0; v < V; ++v) {
      const int64_t c = static_cast<int64_t>(v * Layout::threads + lane) * vector_width;
      if (c >= a.C) continue;
      float factor[vector_width], shift[vector_width];
      values_of<A>(factor, first[v]);
      values_of<A>(shift, second[v]);
      GPTBENCH_UNROLL
      for (int j = 0; j < vector_width; ++j)
        x[v][j] = (x[v][j] - mean[0]) * rstd * factor[j] + shift[j];
      if (a.y != nullptr) store<vector_width>(a.y + r * a.C + c, x[v]);
      if (copy == nullptr) continue;
      round_to<A>(x[v]);
      put_codes<vector_width>(copy + r * a.C + c, x[v], scale, a.fp8.type, largest);
    }
    if (lane == 0) {
      if (a.mean != nullptr) a.mean[r] = mean[0];
      a.rstd[r] = rstd;
    }
  }
  if (copy != nullptr) note_amax(a.fp8.amax, largest);
}

// Any C, any alignment; one block per row.
template <class A>
__global__ void normalization_forward_wide_kernel(Rows<A> a, const A* __restrict__ gamma,
                                                  const A* __restrict__ beta) {
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  const float count = static_cast<float>(a.C);
  uint8_t* const copy = static_cast<uint8_t*>(a.fp8.y);
  const float scale = copy != nullptr ? a.fp8.scale[0] : 1.0f;
  int largest = 0;
  for (int64_t r = blockIdx.x; r < a.R; r += gridDim.x) {
    const A* x = a.x + r * a.C;
    float mean[1] = {}, square[1] = {};
    if (a.sum != nullptr) {  // each thread reads again what it wrote itself
      for (int64_t c = threadIdx.x; c < a.C; c += wide_threads) {
        float formed[1] = {to_float(x[c])}, branch[1] = {to_float(a.branch[r * a.C + c])};
        form_sum<1>(formed, branch, a, r, c);
      }
      x = a.sum + r * a.C;
    }
    if (a.mean != nullptr) {
      for (int64_t c = threadIdx.x; c < a.C; c += wide_threads) mean[0] += to_float(x[c]);
      group_sum<wide_warps>(mean, shared);
      mean[0] /= count;
    }
    for (int64_t c = threadIdx.x; c < a.C; c += wide_threads) {
      const float deviation = to_float(x[c]) - mean[0];
      square[0] += deviation * deviation;
    }
    group_sum<wide_warps>(square, shared);
    const float rstd = 1.0f / sqrtf(square[0] / count + a.epsilon);
    for (int64_t c = threadIdx.x; c < a.C; c += wide_threads) {
      const float shift = beta != nullptr ? to_float(beta[c]) : 0.0f;
      const float n = (to_float(x[c]) - mean[0]) * rstd;
      float y[1] = {n * to_float(gamma[c]) + shift};
      if (a.y != nullptr) store<1>(a.y + r * a.C + c, y);
      if (copy == nullptr) continue;
      round_to<A>(y);
      put_codes<1>(copy + r * a.C + c, y, scale, a.fp8.type, largest);
    }
    if (threadIdx.x == 0) {
      if (a.mean != nullptr) a.mean[r] = mean[0];
      a.rstd[r] = rstd;
    }
  }
  if (copy != nullptr) note_amax(a.fp8.amax, largest);
}

template <class A>
void forward(Queue& queue, const LayerNormForward& norm) {
  if (norm.R == 0) return;
  const Rows<A> a(norm);
  const auto *gamma = static_cast<const A*>(norm.gamma), *beta = static_cast<const A*>(norm.beta);
  const bool aligned = rows_are_aligned(a.C, {{a.y, sizeof(A), a.C},
                                              {a.x, sizeof(A), a.C},
                                              {a.sum, sizeof(A), a.C},
                                              {a.branch, sizeof(A), a.C},
                                              {gamma, sizeof(A), 0},
                                              {beta, sizeof(A), 0}}) &&
                       reinterpret_cast<uintptr_t>(a.fp8.y) % vector_width == 0;
  with_row_layout(
      a.C, aligned,
      [&](auto layout) {
        using L = decltype(layout);
        const dim3 grid{blocks_for(ceil_div(a.R, L::rows), 16), 1, 1};
        launch(GPTBENCH_KERNEL(normalization_forward_kernel<A, L::vectors, L::warps>), grid,
               L::threads * L::rows, sizeof(float) * L::warps, stream_of(queue), a, gamma, beta);
      },
      [&] {
        launch(GPTBENCH_KERNEL(normalization_forward_wide_kernel<A>),
               dim3{blocks_for(a.R, 16), 1, 1}, wide_threads, sizeof(float) * wide_warps,
               stream_of(queue), a, gamma, beta);
      });
}

}  // namespace

template <class A>
void layernorm_forward(Queue& queue, const LayerNormForward& a) {
  forward<A>(queue, a);
}

template <class A>
void rmsnorm_forward(Queue& queue, const RmsNormForward& a) {
  forward<A>(queue, as_layernorm(a));
}

GPTBENCH_CUDA_KERNEL(layernorm_forward, LayerNormForward)
GPTBENCH_CUDA_KERNEL(rmsnorm_forward, RmsNormForward)

}  // namespace gptbench::cuda
