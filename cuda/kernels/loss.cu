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

// exp(x - max), 1 where they are equal; below the normal numbers 0 for 16-bit logits.
template <class A>
__device__ inline float exp_below(float x, float max) {
  return sizeof(A) == sizeof(float) ? expf(x - max) : exp2_fast((x - max) * log2_e);
}

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
  const float scale_a = a.max == max ? 1.0f : exp_below<A>(a.max, max);
  const float scale_b = b.max == max ? 1.0f : exp_below<A>(b.max, max);
  return {max, a.sum * scale_a + b.sum * scale_b};
}

template <class A, int N>
__device__ inline MaxSum with_logits(const MaxSum& so_far, const float (&x)[N]) {
  MaxSum out = so_far;
  GPTBENCH_UNROLL
  for (int j = 0; j < N; ++j) out.max = fmaxf(out.max, x[j]);  // not of NaN
  if (out.max == -HUGE_VALF) {  // so far none is a number above -inf: exp would be exp(NaN)
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) out.sum += x[j] == x[j] ? 0.0f : x[j];
    return out;
  }
  out.sum *= exp_below<A>(so_far.max, out.max);
  GPTBENCH_UNROLL
  for (int j = 0; j < N; ++j) out.sum += exp_below<A>(x[j], out.max);
  return out;
}

// The union of `so_far` and vector v of a row, whose logits from `valid` on do not count.
template <class A, int N>
__device__ inline MaxSum with_vector(const MaxSum& so_far, const A* logits, int64_t v,
                                     int64_t valid) {
  float x[N];
  load<N>(x, logits + v * N);
  const int64_t left = valid - v * N;
  if (left < N) {
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) x[j] = j < left ? x[j] : -HUGE_VALF;
  }
  return with_logits<A>(so_far, x);
}

// The union over a block, in all of its threads the same bits. of_warps: [warps], free again when
// the block has met once more.
template <class A>
__device__ inline MaxSum over_block(MaxSum mine, MaxSum* of_warps) {
  const auto join_lanes = [&](int lanes) {
    for (int bits = lanes / 2; bits > 0; bits /= 2) {
      const MaxSum other{__shfl_xor_sync(full_warp, mine.max, bits),
                         __shfl_xor_sync(full_warp, mine.sum, bits)};
      mine = joined<A>(mine, other);
    }
  };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  join_lanes(32);
  if (lane == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = of_warps[lane % warps];
  join_lanes(warps);
  // Lanes join in different orders, and may differ in the last bit.
  return {__shfl_sync(full_warp, mine.max, 0), __shfl_sync(full_warp, mine.sum, 0)};
}

// Assigns the logit of row r's target, or 0 where it is not among these logits; by the thread that
// holds the vector of N logits in which it lies.
template <class A, int N>
__device__ inline void note_target(const CrossEntropyStatistics& a, int64_t r, const A* logits) {
  const int64_t target = a.targets[r] - a.first_token;
  const bool is_here = target >= 0 && target < a.V_valid;
  const int64_t owner = is_here ? target / N % threads : 0;
  if (static_cast<int64_t>(threadIdx.x) == owner)
    static_cast<float*>(a.target_logit)[r] = is_here ? to_float(logits[target]) : 0.0f;
}

__device__ inline void note_statistics(const CrossEntropyStatistics& a, int64_t r,
                                       const MaxSum& all) {
  if (threadIdx.x != 0) return;
  static_cast<float*>(a.row_max)[r] = all.max;
  static_cast<float*>(a.row_sum)[r] = all.sum;
}

// One block per row.
template <class A, int N>
__global__ void __launch_bounds__(threads)
    cross_entropy_statistics_kernel(CrossEntropyStatistics a) {
  GPTBENCH_DYNAMIC_SHARED(MaxSum, of_warps);
  for (int64_t r = blockIdx.x; r < a.R; r += gridDim.x) {
    const A* const logits = static_cast<const A*>(a.logits) + r * a.V_tp;
    MaxSum mine{-HUGE_VALF, 0.0f};
    for (int64_t v = threadIdx.x; v * N < a.V_valid; v += threads)
      mine = with_vector<A, N>(mine, logits, v, a.V_valid);
    note_target<A, N>(a, r, logits);
    note_statistics(a, r, over_block<A>(mine, of_warps));
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

// What turns the logits of a row into their gradient:
//   dscale (exp(logit - max) / sum - [target]), and 0 from `valid` on.
struct RowGradient {
  float max, scale, dscale;  // scale: dscale / sum
  int64_t valid, target;     // 0 and -1 where the row does not count
};
__device__ inline RowGradient row_gradient(const CrossEntropyFinish& a, int64_t r,
                                           const MaxSum& all, float dscale) {
  const bool counts = a.targets[r] >= 0;
  const int64_t target = counts ? a.targets[r] - a.first_token : -1;
  return {all.max, dscale / all.sum, dscale, counts ? a.V_valid : 0,
          target < a.V_valid ? target : -1};
}
// Vector v of a row, in place.
template <class A, int N>
__device__ inline void to_gradient(float (&x)[N], int64_t v, const RowGradient& row) {
  const int64_t left = row.valid - v * N, at = row.target - v * N;
  GPTBENCH_UNROLL
  for (int j = 0; j < N; ++j) x[j] = exp_below<A>(x[j], row.max) * row.scale;
  if (at >= 0 && at < N) {
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) x[j] -= j == at ? row.dscale : 0.0f;
  }
  if (left < N) {
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) x[j] = j < left ? x[j] : 0.0f;
  }
}

// In place; one block per row.
template <class A, int N>
__global__ void __launch_bounds__(threads) cross_entropy_finish_kernel(CrossEntropyFinish a) {
  const float dscale = weight_of_rows(a);
  for (int64_t r = blockIdx.x; r < a.R; r += gridDim.x) {
    A* const logits = static_cast<A*>(a.logits) + r * a.V_tp;
    const RowGradient row = row_gradient(
        a, r, {static_cast<const float*>(a.row_max)[r], static_cast<const float*>(a.row_sum)[r]},
        dscale);
    for (int64_t v = threadIdx.x; v * N < a.V_tp; v += threads) {
      float x[N];
      load<N>(x, logits + v * N);
      to_gradient<A>(x, v, row);
      store<N>(logits + v * N, x);
    }
  }
}

// Both, with the row in shared memory behind the statistics of warps, of which there are two sets
// in turn. A thread copies, reads and writes the same vectors throughout: it computes with the
// first of them while others arrive, and where one has been written, that of the next row is on its
// way.
template <class A>
__global__ void __launch_bounds__(threads, 2) cross_entropy_kernel(CrossEntropy a) {
  constexpr int N = vector_bytes / static_cast<int>(sizeof(A));
  constexpr int groups = 4;  // of a thread's vectors, which arrive together
  GPTBENCH_DYNAMIC_SHARED(MaxSum, shared);
  A* const row = reinterpret_cast<A*>(shared + 2 * warps);
  MaxSum* of_warps = shared;
  const CrossEntropyStatistics& s = a.statistics;
  const CrossEntropyFinish& f = a.finish;
  const int vectors = static_cast<int>(f.V_tp / N), valid = static_cast<int>(s.V_valid);
  const int in_group = (vectors + groups * threads - 1) / (groups * threads) * threads;
  const auto for_group = [&](int group, const auto& visit) {
    const int end = (group + 1) * in_group;
    for (int v = group * in_group + static_cast<int>(threadIdx.x); v < end && v < vectors;
         v += threads)
      visit(v);
  };
  const auto row_at = [&](int64_t r) { return static_cast<A*>(f.logits) + r * f.V_tp; };
  const auto copy = [&](int v, int64_t r) { copy_16_async(row + v * N, row_at(r) + v * N, true); };
  const float dscale = weight_of_rows(f);
  int64_t r = blockIdx.x;
  if (r >= f.R) return;
  for (int group = 0; group < groups; ++group) {
    for_group(group, [&](int v) { copy(v, r); });
    commit_copies();
  }
  for (; r < f.R; r += gridDim.x) {
    MaxSum mine{-HUGE_VALF, 0.0f};
    const auto add_group = [&](int group) {
      for_group(group, [&](int v) {
        if (v * N < valid) mine = with_vector<A, N>(mine, row, v, valid);
      });
    };
    static_assert(groups == 4, "a wait for each");
    wait_for_copies<3>();
    add_group(0);
    wait_for_copies<2>();
    add_group(1);
    wait_for_copies<1>();
    add_group(2);
    wait_for_copies<0>();
    add_group(3);
    note_target<A, N>(s, r, row);
    const MaxSum all = over_block<A>(mine, of_warps);
    note_statistics(s, r, all);
    of_warps = of_warps == shared ? shared + warps : shared;
    const RowGradient gradient = row_gradient(f, r, all, dscale);
    const int64_t next = r + gridDim.x;
    for (int group = 0; group < groups; ++group) {
      for_group(group, [&](int v) {
        float x[N];
        load<N>(x, row + v * N);
        to_gradient<A>(x, v, gradient);
        store<N>(row_at(r) + v * N, x);
        if (next < f.R) copy(v, next);
      });
      commit_copies();
    }
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

// Two blocks per multiprocessor.
template <class A>
void cross_entropy(Queue& queue, const CrossEntropy& a) {
  const CrossEntropyFinish& finish = a.finish;
  const size_t shared = sizeof(MaxSum) * 2 * warps + sizeof(A) * static_cast<size_t>(finish.V_tp);
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
