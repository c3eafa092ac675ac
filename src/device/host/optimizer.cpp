#include <cmath>

#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {
namespace {

template <class G>
inline double square(const G& g) {
  const double x = static_cast<double>(simd::load(g));
  return x * x;
}

template <class G>
void squared_norm_of(const SquaredNorm& a, const G* g) {
  // Partial sums of blocks go through the stack: as many blocks at a time as fit there.
  constexpr int64_t max_blocks = 1024;
  double partial[max_blocks];
  double* const partials = partial;
  const int64_t blocks = ceil_div(a.n, block_elements);
  const int64_t n = a.n;
  for (int64_t first = 0; first < blocks; first += max_blocks) {
    const int64_t count = std::min(max_blocks, blocks - first);
    parallel("gptbench::squared_norm", count, [=](int64_t block) {
      const int64_t begin = (first + block) * block_elements;
      const int64_t end = std::min(n, begin + block_elements);
      // Four chains of additions: one would be bound by their latency.
      const int64_t quarter = (end - begin) / 4;
      const G* const g0 = g + begin;
      double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
      for (int64_t i = 0; i < quarter; ++i) {
        s0 += square(g0[i]);
        s1 += square(g0[i + quarter]);
        s2 += square(g0[i + 2 * quarter]);
        s3 += square(g0[i + 3 * quarter]);
      }
      for (int64_t i = begin + 4 * quarter; i < end; ++i) s0 += square(g[i]);
      partials[block] = (s0 + s1) + (s2 + s3);
    });
    for (int64_t block = 0; block < count; ++block) a.sum[0] += partial[block];
  }
}

template <class A, class P, class M, class G>
void adamw_of(const AdamW& a) {
  P* const p = static_cast<P*>(a.p);
  M* const m = static_cast<M*>(a.m);
  M* const v = static_cast<M*>(a.v);
  const G* const g = static_cast<const G*>(a.g);
  A* const working = static_cast<A*>(a.working);
  const double correction1 = 1.0 - std::pow(a.beta1, static_cast<double>(a.t));
  const double correction2 = 1.0 - std::pow(a.beta2, static_cast<double>(a.t));
  const float factor = static_cast<float>(a.factor[0]);
  const float beta1 = static_cast<float>(a.beta1);
  const float beta2 = static_cast<float>(a.beta2);
  const float one_minus_beta1 = static_cast<float>(1.0 - a.beta1);
  const float one_minus_beta2 = static_cast<float>(1.0 - a.beta2);
  const float step_size = static_cast<float>(a.lr / correction1);
  const float v_scale = static_cast<float>(1.0 / correction2);
  const float epsilon = static_cast<float>(a.epsilon);
  const float decay = static_cast<float>(a.lr * a.weight_decay);
  const bool skip = (a.skip != nullptr && a.skip[0] != 0.0) || std::isnan(a.factor[0]);
  parallel_blocks("gptbench::adamw", a.n, [=](int64_t begin, int64_t end) {
    const int64_t updated = skip ? begin : end;
#pragma omp simd
    for (int64_t i = begin; i < updated; ++i) {
      const float gradient = factor * simd::load(g[i]);
      const float first = beta1 * simd::load(m[i]) + one_minus_beta1 * gradient;
      const float second = beta2 * simd::load(v[i]) + one_minus_beta2 * gradient * gradient;
      const float before = simd::load(p[i]);
      const float step = step_size * first / (std::sqrt(v_scale * second) + epsilon);
      simd::store(m[i], first);
      simd::store(v[i], second);
      simd::store(p[i], before - (step + decay * before));
    }
    if (working == nullptr) return;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) simd::store(working[i], simd::load(p[i]));
  });
}

}  // namespace

template <class A>
void squared_norm(Queue&, const SquaredNorm& a) {
  simd::with_type<A>(a.type,
                     [&](auto g) { squared_norm_of(a, static_cast<const decltype(g)*>(a.g)); });
}

template <class A>
void accumulate(Queue&, const Accumulate& a) {
  float* const y = static_cast<float*>(a.y);
  const float* const x = static_cast<const float*>(a.x);
  parallel_blocks("gptbench::accumulate", a.n, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

template <class A>
void sum_scalars(Queue&, const SumScalars& a) {
  double sum = 0.0;
  for (int64_t i = 0; i < a.n; ++i) sum += a.x[i];
  a.out[0] = sum;
}

template <class A>
void loss_scale(Queue&, const LossScale& a) {
  const double scale = a.state[0];
  const bool good = std::isfinite(a.norm2[0]);
  const double good_steps = good ? a.state[1] + 1.0 : 0.0;
  const bool grows = good && a.window > 0 && good_steps >= static_cast<double>(a.window);
  const double borne = grows  ? static_cast<double>(a.hysteresis)
                       : good ? a.state[2]
                              : a.state[2] - 1.0;
  const bool shrinks = !good && borne <= 0.0;
  a.used[0] = scale;
  a.skip[0] = good ? 0.0 : 1.0;
  if (good) a.norm2[0] /= scale * scale;
  a.state[0] = scale * (grows ? a.growth : shrinks ? a.backoff : 1.0);
  a.state[1] = grows ? 0.0 : good_steps;
  a.state[2] = borne;
  a.next[0] = a.state[0];
}

template <class A>
void clip_factor(Queue&, const ClipFactor& a) {
  const double norm = std::sqrt(a.norm2[0]);
  const double factor = !std::isfinite(norm)              ? std::nan("")
                        : a.clip == 0.0 || norm <= a.clip ? 1.0
                                                          : a.clip / norm;
  a.factor[0] = a.loss_scale != nullptr ? factor / a.loss_scale[0] : factor;
}

template <class A>
void adamw(Queue&, const AdamW& a) {
  simd::with_type<A>(a.p_type, [&](auto p) {
    simd::with_type<A>(a.moment_type, [&](auto m) {
      simd::with_type<A>(a.g_type,
                         [&](auto g) { adamw_of<A, decltype(p), decltype(m), decltype(g)>(a); });
    });
  });
}

GPTBENCH_OPTIMIZER_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
