// The optimizer's kernels over flat shards. AdamW moves p, m, v twice, g once and working once.
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {
namespace {

double power(double base, int64_t exponent) {
  return std::pow(base, static_cast<double>(exponent));
}

// P, M and G: types of the master copy, the moments and the gradient; A that of `working`.
template <class A, class P, class M, class G>
struct AdamWElements {
  P* p;
  M* m;
  M* v;
  const G* g;
  A* working;
  const double* factor;
  const double* skip;
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float step_size;        // lr / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon, decay;   // lr weight_decay
  bool decays;
  const float* corrections;  // in place of step_size, root_correction and decay, or null

  explicit AdamWElements(const AdamW& a)
      : p(static_cast<P*>(a.p)),
        m(static_cast<M*>(a.m)),
        v(static_cast<M*>(a.v)),
        g(static_cast<const G*>(a.g)),
        working(static_cast<A*>(a.working)),
        factor(a.factor),
        skip(a.skip),
        beta1(static_cast<float>(a.beta1)),
        beta2(static_cast<float>(a.beta2)),
        one_minus_beta1(static_cast<float>(1.0 - a.beta1)),
        one_minus_beta2(static_cast<float>(1.0 - a.beta2)),
        step_size(static_cast<float>(a.lr / (1.0 - power(a.beta1, a.t)))),
        root_correction(static_cast<float>(1.0 / std::sqrt(1.0 - power(a.beta2, a.t)))),
        epsilon(static_cast<float>(a.epsilon)),
        decay(static_cast<float>(a.lr * a.weight_decay)),
        decays(a.weight_decay != 0.0),
        corrections(a.corrections) {}

  template <int N>
  __device__ void at(int64_t i) const {
    float x[N];
    load<N>(x, p + i);
    if ((skip == nullptr || skip[0] == 0.0) && factor[0] == factor[0]) {
      const float scale = static_cast<float>(factor[0]);
      const float size = corrections != nullptr ? corrections[0] : step_size;
      const float root_factor = corrections != nullptr ? corrections[1] : root_correction;
      const float shrink = corrections != nullptr && decays ? corrections[2] : decay;
      float gradient[N], m1[N], m2[N];
      load<N>(gradient, g + i);
      load<N>(m1, m + i);
      load<N>(m2, v + i);
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j) {
        const float clipped = scale * gradient[j];
        m1[j] = beta1 * m1[j] + one_minus_beta1 * clipped;
        m2[j] = beta2 * m2[j] + one_minus_beta2 * clipped * clipped;
        const float root = sqrtf(m2[j]) * root_factor + epsilon;
        x[j] -= size * (m1[j] / root) + shrink * x[j];
      }
      store<N>(m + i, m1);
      store<N>(v + i, m2);
      store<N>(p + i, x);
    }
    if (working == nullptr) return;
    // Rounded as p stores it, so that later reads of p give the same.
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) x[j] = to_float(from_float<P>(x[j]));
    store<N>(working + i, x);
  }
};

template <class A, class P, class M, class G>
void update(Queue& queue, const AdamW& a) {
  elementwise(queue, AdamWElements<A, P, M, G>(a), a.n,
              {{a.p, sizeof(P)},
               {a.m, sizeof(M)},
               {a.v, sizeof(M)},
               {a.g, sizeof(G)},
               {a.working, sizeof(A)}});
}

// Calls f with a value of the storage type `type`, which is that of S (float) or of A.
template <class A, class F>
void with_type(DType type, const F& f) {
  if constexpr (sizeof(A) == sizeof(float))
    f(float{});
  else if (type == DType::f32)
    f(float{});
  else
    f(A{});
}

struct AccumulateElements {
  float* y;
  const float* x;

  template <int N>
  __device__ void at(int64_t i) const {
    float sum[N], v[N];
    load<N>(sum, y + i);
    load<N>(v, x + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) sum[j] += v[j];
    store<N>(y + i, sum);
  }
};

constexpr int64_t norm_block = 4096;  // elements whose squares are summed first (kernels.h)
constexpr int norm_threads = 256, norm_warps = norm_threads / 32;

// partial[b] = sum of g^2 over block b of elements. Without scratch memory (partial is null) one
// block of threads takes one block of elements after the other: out[0] += their sums.
template <class G>
__global__ void squared_norm_kernel(const G* g, int64_t n, int64_t blocks, double* partial,
                                    double* out) {
  GPTBENCH_DYNAMIC_SHARED(double, shared);
  double total = 0.0;
  const bool aligned = reinterpret_cast<uintptr_t>(g) % vector_bytes == 0;
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const int64_t begin = b * norm_block;
    const int64_t end = begin + norm_block < n ? begin + norm_block : n;
    double sum[1] = {};
    if (aligned && end - begin == norm_block) {
      GPTBENCH_UNROLL
      for (int v = 0; v < norm_block / (norm_threads * vector_width); ++v) {
        float x[vector_width];
        load<vector_width>(x, g + begin + (v * norm_threads + threadIdx.x) * vector_width);
        GPTBENCH_UNROLL
        for (int j = 0; j < vector_width; ++j)
          sum[0] += static_cast<double>(x[j]) * static_cast<double>(x[j]);
      }
    } else {
      for (int64_t i = begin + threadIdx.x; i < end; i += norm_threads) {
        const double x = static_cast<double>(to_float(g[i]));
        sum[0] += x * x;
      }
    }
    group_sum<norm_warps>(sum, shared);
    total += sum[0];
    if (partial != nullptr && threadIdx.x == 0) partial[b] = sum[0];
  }
  if (partial == nullptr && threadIdx.x == 0) out[0] += total;
}

// out[0] += x[0] + ... + x[n-1]; one block, in an order that n alone decides.
__global__ void sum_doubles_kernel(double* out, const double* x, int64_t n) {
  GPTBENCH_DYNAMIC_SHARED(double, shared);
  double sum[1] = {};
  for (int64_t i = threadIdx.x; i < n; i += norm_threads) sum[0] += x[i];
  group_sum<norm_warps>(sum, shared);
  if (threadIdx.x == 0) out[0] += sum[0];
}

template <class G>
void add_squared_norm(Queue& queue, const SquaredNorm& a) {
  const G* const g = static_cast<const G*>(a.g);
  const size_t shared = sizeof(double) * norm_warps;
  const int64_t capacity = a.workspace.bytes / static_cast<int64_t>(sizeof(double));
  if (capacity == 0) {
    launch(GPTBENCH_KERNEL(squared_norm_kernel<G>), dim3{1, 1, 1}, norm_threads, shared,
           stream_of(queue), g, a.n, ceil_div(a.n, norm_block), static_cast<double*>(nullptr),
           a.sum);
    return;
  }
  double* const partial = static_cast<double*>(a.workspace.data);
  for (int64_t first = 0; first < a.n; first += capacity * norm_block) {
    const int64_t n = std::min(a.n - first, capacity * norm_block);
    const int64_t blocks = ceil_div(n, norm_block);
    launch(GPTBENCH_KERNEL(squared_norm_kernel<G>), dim3{blocks_for(blocks, 8), 1, 1}, norm_threads,
           shared, stream_of(queue), g + first, n, blocks, partial, a.sum);
    launch(GPTBENCH_KERNEL(sum_doubles_kernel), dim3{1, 1, 1}, norm_threads, shared,
           stream_of(queue), a.sum, partial, blocks);
  }
}

__global__ void sum_scalars_kernel(SumScalars a) {
  double sum = 0.0;
  for (int64_t i = 0; i < a.n; ++i) sum += a.x[i];
  a.out[0] = sum;
}

__global__ void loss_scale_kernel(LossScale a) {
  const double scale = a.state[0], norm2 = a.norm2[0];
  const bool good = norm2 - norm2 == 0.0;  // neither infinite nor NaN
  const double good_steps = good ? a.state[1] + 1.0 : 0.0;
  const bool grows = good && a.window > 0 && good_steps >= static_cast<double>(a.window);
  double borne = a.state[2];
  if (grows) borne = static_cast<double>(a.hysteresis);
  if (!good) borne -= 1.0;
  const bool shrinks = !good && borne <= 0.0;
  a.used[0] = scale;
  a.skip[0] = good ? 0.0 : 1.0;
  if (good) a.norm2[0] = norm2 / (scale * scale);
  a.state[0] = a.next[0] = scale * (grows ? a.growth : shrinks ? a.backoff : 1.0);
  a.state[1] = grows ? 0.0 : good_steps;
  a.state[2] = borne;
}

__global__ void clip_factor_kernel(ClipFactor a) {
  const double norm = sqrt(a.norm2[0]);
  const bool good = norm - norm == 0.0;  // neither infinite nor NaN
  const double factor = !good ? norm - norm : a.clip == 0.0 || norm <= a.clip ? 1.0 : a.clip / norm;
  a.factor[0] = a.loss_scale != nullptr ? factor / a.loss_scale[0] : factor;
}

}  // namespace

template <class A>
void adamw(Queue& queue, const AdamW& a) {
  // Squares vanish in f16: no plan keeps moments in it.
  using Moment = std::conditional_t<std::is_same_v<A, float16>, float, A>;
  GPTBENCH_CHECK(a.moment_type == DType::f32 || a.moment_type == dtype_of<Moment>(),
                 "moments of f32 or bf16");
  with_type<A>(a.p_type, [&](auto p) {
    with_type<Moment>(a.moment_type, [&](auto m) {
      with_type<A>(a.g_type,
                   [&](auto g) { update<A, decltype(p), decltype(m), decltype(g)>(queue, a); });
    });
  });
}

template <class A>
void accumulate(Queue& queue, const Accumulate& a) {
  const AccumulateElements f{static_cast<float*>(a.y), static_cast<const float*>(a.x)};
  elementwise(queue, f, a.n, {{a.y, sizeof(float)}, {a.x, sizeof(float)}});
}

template <class A>
void squared_norm(Queue& queue, const SquaredNorm& a) {
  if (a.n == 0) return;
  with_type<A>(a.type, [&](auto g) { add_squared_norm<decltype(g)>(queue, a); });
}

template <class A>
void sum_scalars(Queue& queue, const SumScalars& a) {
  launch(GPTBENCH_KERNEL(sum_scalars_kernel), dim3{1, 1, 1}, 1, 0, stream_of(queue), a);
}

template <class A>
void loss_scale(Queue& queue, const LossScale& a) {
  launch(GPTBENCH_KERNEL(loss_scale_kernel), dim3{1, 1, 1}, 1, 0, stream_of(queue), a);
}

template <class A>
void clip_factor(Queue& queue, const ClipFactor& a) {
  launch(GPTBENCH_KERNEL(clip_factor_kernel), dim3{1, 1, 1}, 1, 0, stream_of(queue), a);
}

GPTBENCH_OPTIMIZER_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
