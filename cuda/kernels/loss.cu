// Cross-entropy over the logits in place: statistics read them once (R V elements of A), the finish
// reads and writes them once; where a row fits into shared memory both together do. Nothing else of
// that size exists.
#include "cuda/attention/mma.cuh"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {
namespace {

constexpr int threads = 512, warps = threads / 32;

// Maximum of some logits and the sum of exp(logit - maximum) over them. NaN enters the sum: a
// maximum alone would lose it.
struct MaxSum {
  float max, sum;
};
// The union of two sets: the sum of the one with the smaller maximum is rescaled. An empty set
// (-inf, 0) changes nothing.
template <class A>
__device__ inline MaxSum joined(const MaxSum& a, const MaxSum& b) {
  const float max = a.max > b.max ? a.max : b.max;
  const float scale_a = a.max == max ? 1.0f : exp_of<A>(a.max - max);
  const float scale_b = b.max == max ? 1.0f : exp_of<A>(b.max - max);
  return {max, a.sum * scale_a + b.sum * scale_b};
}

template <class A, int N>
__device__ inline MaxSum with_logits(const MaxSum& so_far, const float (&x)[N]) {
  MaxSum out = so_far;
  GPTBENCH_UNROLL
  for (int j = 0; j < N; ++j) out.max = x[j] > out.max ? x[j] : out.max;
  if (out.max == -HUGE_VALF) {  // so far none is a number above -inf: exp would be exp(NaN)
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) out.sum += x[j] == x[j] ? 0.0f : x[j];
    return out;
  }
  out.sum *= exp_of<A>(so_far.max - out.max);
  GPTBENCH_UNROLL
  for (int j = 0; j < N; ++j) out.sum += exp_of<A>(x[j] - out.max);
  return out;
}

// Statistics of row r, formed by a block from `logits`, that row in any memory. All threads may
// read of_warps[0], those of the whole row, until the block meets again.
template <class A, int N>
__device__ inline void row_statistics(const CrossEntropyStatistics& a, int64_t r, const A* logits,
                                      MaxSum* of_warps) {
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t vectors = a.V_valid / N;
  MaxSum mine{-HUGE_VALF, 0.0f};
  for (int64_t v = thread; v < vectors; v += threads) {
    float x[N];
    load<N>(x, logits + v * N);
    mine = with_logits<A>(mine, x);
  }
  for (int64_t j = vectors * N + thread; j < a.V_valid; j += threads) {
    const float x[1] = {to_float(logits[j])};
    mine = with_logits<A>(mine, x);
  }
  GPTBENCH_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) {
    const MaxSum other{__shfl_xor_sync(full_warp, mine.max, bits),
                       __shfl_xor_sync(full_warp, mine.sum, bits)};
    mine = joined<A>(mine, other);
  }
  if (thread % 32 == 0) of_warps[thread / 32] = mine;
  __syncthreads();
  if (thread == 0) {
    MaxSum all = of_warps[0];
    for (int w = 1; w < warps; ++w) all = joined<A>(all, of_warps[w]);
    const int64_t target = a.targets[r] - a.first_token;
    static_cast<float*>(a.row_max)[r] = all.max;
    static_cast<float*>(a.row_sum)[r] = all.sum;
    static_cast<float*>(a.target_logit)[r] =
        target >= 0 && target < a.V_valid ? to_float(logits[target]) : 0.0f;
    of_warps[0] = all;
  }
  __syncthreads();
}

// One block per row.
template <class A, int N>
__global__ void __launch_bounds__(threads)
    cross_entropy_statistics_kernel(CrossEntropyStatistics a) {
  GPTBENCH_DYNAMIC_SHARED(MaxSum, of_warps);
  for (int64_t r = blockIdx.x; r < a.R; r += gridDim.x) {
    row_statistics<A, N>(a, r, static_cast<const A*>(a.logits) + r * a.V_tp, of_warps);
    __syncthreads();
  }
}

__global__ void cross_entropy_combine_kernel(CrossEntropyCombine a) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const float* const parts = static_cast<const float*>(a.parts);
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; r < a.R;
       r += stride) {
    MaxSum all{-HUGE_VALF, 0.0f};
    float target = 0.0f;
    for (int64_t p = 0; p < a.num_parts; ++p) {
      const float* const part = parts + p * a.part + r;
      all = joined<float>(all, {part[0], part[a.array]});
      target += part[2 * a.array];
    }
    static_cast<float*>(a.row_max)[r] = all.max;
    static_cast<float*>(a.row_sum)[r] = all.sum;
    static_cast<float*>(a.target_logit)[r] = target;
  }
}

// loss_sum[0] += the losses of all rows; one block, in an order that R alone decides.
__global__ void cross_entropy_loss_kernel(CrossEntropyFinish a) {
  GPTBENCH_DYNAMIC_SHARED(double, shared);
  double sum[1] = {};
  for (int64_t r = threadIdx.x; r < a.R; r += threads) {
    if (a.targets[r] < 0) continue;
    sum[0] += log(static_cast<double>(static_cast<const float*>(a.row_sum)[r])) +
              static_cast<double>(static_cast<const float*>(a.row_max)[r]) -
              static_cast<double>(static_cast<const float*>(a.target_logit)[r]);
  }
  group_sum<warps>(sum, shared);
  if (threadIdx.x == 0) a.loss_sum[0] += sum[0];
}

__device__ inline float weight_of_rows(const CrossEntropyFinish& a) {
  return static_cast<float>(a.dscale * (a.loss_scale != nullptr ? a.loss_scale[0] : 1.0) *
                            (a.row_weight != nullptr ? a.row_weight[0] : 1.0));
}

// Row r <- dscale (exp(logit - max) / sum - [target]), by a block; `logits` is the row in any
// memory.
template <class A, int N>
__device__ inline void finish_row(const CrossEntropyFinish& a, int64_t r, const A* logits,
                                  const MaxSum& all, float dscale) {
  A* const out = static_cast<A*>(a.logits) + r * a.V_tp;
  const bool counts = a.targets[r] >= 0;
  const int64_t target = counts ? a.targets[r] - a.first_token : -1;
  const int64_t valid = counts ? a.V_valid : 0;
  const float scale = dscale / all.sum;
  for (int64_t j0 = static_cast<int64_t>(threadIdx.x) * N; j0 < a.V_tp; j0 += threads * N) {
    float x[N];
    load<N>(x, logits + j0);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) {
      x[j] = j0 + j < valid ? exp_of<A>(x[j] - all.max) * scale : 0.0f;
      if (j0 + j == target && j0 + j < valid) x[j] -= dscale;
    }
    store<N>(out + j0, x);
  }
}

// In place; one block per row.
template <class A, int N>
__global__ void __launch_bounds__(threads) cross_entropy_finish_kernel(CrossEntropyFinish a) {
  const float dscale = weight_of_rows(a);
  for (int64_t r = blockIdx.x; r < a.R; r += gridDim.x)
    finish_row<A, N>(
        a, r, static_cast<const A*>(a.logits) + r * a.V_tp,
        {static_cast<const float*>(a.row_max)[r], static_cast<const float*>(a.row_sum)[r]}, dscale);
}

// Both, with the row in shared memory behind the statistics of warps.
template <class A>
__global__ void __launch_bounds__(threads) cross_entropy_kernel(CrossEntropy a) {
  GPTBENCH_DYNAMIC_SHARED(MaxSum, of_warps);
  A* const row = reinterpret_cast<A*>(of_warps + warps);
  constexpr int64_t piece = vector_bytes / static_cast<int64_t>(sizeof(A));
  const float dscale = weight_of_rows(a.finish);
  for (int64_t r = blockIdx.x; r < a.finish.R; r += gridDim.x) {
    const A* const logits = static_cast<const A*>(a.statistics.logits) + r * a.finish.V_tp;
    for (int64_t j = static_cast<int64_t>(threadIdx.x) * piece; j < a.finish.V_tp;
         j += threads * piece)
      copy_16_async(row + j, logits + j, true);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    row_statistics<A, vector_width>(a.statistics, r, row, of_warps);
    finish_row<A, vector_width>(a.finish, r, row, of_warps[0], dscale);
    __syncthreads();  // the next row takes the place of this one
  }
}

// Shared memory that a block may have on every supported GPU.
constexpr size_t shared_bytes_everywhere = 99 * 1024;

void add_losses(Queue& queue, const CrossEntropyFinish& a) {
  launch(GPTBENCH_KERNEL(cross_entropy_loss_kernel), dim3{1, 1, 1}, threads, sizeof(double) * warps,
         stream_of(queue), a);
}

template <class A>
bool aligned(const void* logits, int64_t V_tp) {
  return rows_are_aligned(V_tp, {{logits, sizeof(A), V_tp}});
}

}  // namespace

template <class A>
void cross_entropy_statistics(Queue& queue, const CrossEntropyStatistics& a) {
  if (a.R == 0) return;
  const dim3 grid{blocks_for(a.R, 4), 1, 1};
  const size_t shared = sizeof(MaxSum) * warps;
  if (aligned<A>(a.logits, a.V_tp))
    launch(GPTBENCH_KERNEL(cross_entropy_statistics_kernel<A, vector_width>), grid, threads, shared,
           stream_of(queue), a);
  else
    launch(GPTBENCH_KERNEL(cross_entropy_statistics_kernel<A, 1>), grid, threads, shared,
           stream_of(queue), a);
}

template <class A>
void cross_entropy_combine(Queue& queue, const CrossEntropyCombine& a) {
  if (a.R == 0) return;
  launch(GPTBENCH_KERNEL(cross_entropy_combine_kernel),
         dim3{blocks_for(ceil_div(a.R, 256), 4), 1, 1}, 256, 0, stream_of(queue), a);
}

template <class A>
void cross_entropy_finish(Queue& queue, const CrossEntropyFinish& a) {
  if (a.R == 0) return;
  add_losses(queue, a);
  const dim3 grid{blocks_for(a.R, 4), 1, 1};
  if (aligned<A>(a.logits, a.V_tp))
    launch(GPTBENCH_KERNEL(cross_entropy_finish_kernel<A, vector_width>), grid, threads, 0,
           stream_of(queue), a);
  else
    launch(GPTBENCH_KERNEL(cross_entropy_finish_kernel<A, 1>), grid, threads, 0, stream_of(queue),
           a);
}

// Two blocks per multiprocessor: one copies its row while the other computes.
template <class A>
void cross_entropy(Queue& queue, const CrossEntropy& a) {
  const CrossEntropyFinish& finish = a.finish;
  const size_t shared = sizeof(MaxSum) * warps + sizeof(A) * static_cast<size_t>(finish.V_tp);
  if (shared > shared_bytes_everywhere || !aligned<A>(finish.logits, finish.V_tp)) {
    cross_entropy_statistics<A>(queue, a.statistics);
    cross_entropy_finish<A>(queue, finish);
    return;
  }
  if (finish.R == 0) return;
  launch(GPTBENCH_KERNEL(cross_entropy_kernel<A>), dim3{blocks_for(finish.R, 2), 1, 1}, threads,
         shared, stream_of(queue), a);
  add_losses(queue, finish);
}

GPTBENCH_LOSS_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
