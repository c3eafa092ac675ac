#include "device/host_dropout.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/simd_math.h"

namespace gptbench::host {
namespace {

// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)): gelu(x) = x sigmoid(2u), u = sqrt(2/pi) (x + cubic x^3).
constexpr float twice_sqrt_2_over_pi = 1.59576912160573071176f;
constexpr float cubic = 0.044715f;

inline float gelu_sigmoid(float x) {
  const float two_u = twice_sqrt_2_over_pi * (x + cubic * x * x * x);
  return 1.0f / (1.0f + simd::exp(-two_u));
}

}  // namespace

template <class A>
void gelu_forward(Queue&, const GeluForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const x = static_cast<const A*>(a.x);
  parallel_blocks("gptbench::gelu_forward", a.n, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float v = simd::load(x[i]);
      simd::store(y[i], v * gelu_sigmoid(v));
    }
  });
}

template <class A>
void gelu_backward(Queue&, const GeluBackward& a) {
  A* const dx = static_cast<A*>(a.dx);
  const A* const dy = static_cast<const A*>(a.dy);
  const A* const x = static_cast<const A*>(a.x);
  parallel_blocks("gptbench::gelu_backward", a.n, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      // Beyond |x| = 12 the derivative is 0 or 1 in float; the bound keeps x^2 finite.
      float v = simd::load(x[i]);
      v = v > 12.0f ? 12.0f : v;  // comparisons that NaN passes through
      v = v < -12.0f ? -12.0f : v;
      const float s = gelu_sigmoid(v);
      const float slope = twice_sqrt_2_over_pi * (1.0f + 3.0f * cubic * v * v);
      simd::store(dx[i], simd::load(dy[i]) * (s + v * s * (1.0f - s) * slope));
    }
  });
}

template <class A>
void residual_forward(Queue&, const ResidualForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const residual = static_cast<const A*>(a.residual);
  const A* const x = static_cast<const A*>(a.x);
  if (a.dropout.rate == 0.0) {
    parallel_blocks("gptbench::residual_forward", a.n, [=](int64_t begin, int64_t end) {
      if (residual != nullptr) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i)
          simd::store(y[i], simd::load(residual[i]) + simd::load(x[i]));
      } else {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) y[i] = x[i];
      }
    });
    return;
  }
  const DropoutFactors factors(a.dropout);
  const int64_t first_element = a.first_element;
  parallel_blocks("gptbench::residual_forward_dropout", a.n, [=](int64_t begin, int64_t end) {
    float factor[dropout_chunk];
    for (int64_t first = begin; first < end; first += dropout_chunk) {
      const int64_t count = std::min(dropout_chunk, end - first);
      factors.fill(factor, first_element + first, count);
      if (residual != nullptr) {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
          simd::store(y[first + i],
                      simd::load(residual[first + i]) + simd::load(x[first + i]) * factor[i]);
      } else {
#pragma omp simd
        for (int64_t i = 0; i < count; ++i)
          simd::store(y[first + i], simd::load(x[first + i]) * factor[i]);
      }
    }
  });
}

template <class A>
void dropout_backward(Queue& queue, const DropoutBackward& a) {
  residual_forward<A>(queue, ResidualForward{a.dx, nullptr, a.dy, a.n, a.dropout, a.first_element});
}

template <class A>
void cast(Queue&, const Cast& a) {
  A* const y = static_cast<A*>(a.y);
  const float* const x = static_cast<const float*>(a.x);
  parallel_blocks("gptbench::cast", a.n, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) simd::store(y[i], x[i]);
  });
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(gelu_forward, GeluForward);
GPTBENCH_HOST_KERNEL(gelu_backward, GeluBackward);
GPTBENCH_HOST_KERNEL(residual_forward, ResidualForward);
GPTBENCH_HOST_KERNEL(dropout_backward, DropoutBackward);
GPTBENCH_HOST_KERNEL(cast, Cast);
}  // namespace gptbench
