#include "device/host_dropout.h"
#include "device/host_fp8.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/simd_map.h"
#include "device/simd_math.h"

namespace gptbench::host {
namespace {

// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)): gelu(x) = x sigmoid(2u), u = sqrt(2/pi) (x + cubic x^3).
constexpr float twice_sqrt_2_over_pi = 1.59576912160573071176f;
constexpr float cubic = 0.044715f;
// Beyond it the sigmoid is 0 or 1, and the derivative too, in float.
constexpr float gelu_end = 9.9f;

// make(out, begin, n) assigns elements begin to begin + n - 1: block by block, or row by row where
// an fp8 copy is wanted.
template <class A, class Make>
void in_rows_or_blocks(const char* name, A* array, const Fp8Copy& copy, int64_t n, int64_t C,
                       const Make& make) {
  if (copy.wanted())
    make_copied<1>(
        name, array, copy, n / C, C,
        [=](A* const* out, int64_t r, int64_t c, int64_t m) { make(out[0], r * C + c, m); });
  else
    parallel_blocks(name, n,
                    [=](int64_t begin, int64_t end) { make(array + begin, begin, end - begin); });
}

}  // namespace

template <class A>
void gelu_forward(Queue&, const GeluForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const x = static_cast<const A*>(a.x);
  const auto make = [=](A* out, int64_t begin, int64_t n) {
    const auto interval = simd::Interval::symmetric(gelu_end);
    const auto gelu = [=](float v) __attribute__((always_inline)) {
      const float w = interval.nearest(v);
      const float argument = w * (twice_sqrt_2_over_pi + twice_sqrt_2_over_pi * cubic * (w * w));
      return v * simd::sigmoid<simd::accuracy_of<A>()>(argument).value;
    };
    simd::map<simd::Ties::away>(out, n, gelu, x + begin);
  };
  in_rows_or_blocks("gptbench::gelu_forward", y, a.fp8, a.n, a.C, make);
}

template <class A>
void gelu_backward(Queue&, const GeluBackward& a) {
  A* const dx = static_cast<A*>(a.dx);
  const A* const dy = static_cast<const A*>(a.dy);
  const A* const x = static_cast<const A*>(a.x);
  const auto make = [=](A* out, int64_t begin, int64_t n) {
    const auto interval = simd::Interval::symmetric(gelu_end);
    const auto gradient = [=](float d, float v) __attribute__((always_inline)) {
      const float w = interval.nearest(v);
      const float argument = w * (twice_sqrt_2_over_pi + twice_sqrt_2_over_pi * cubic * (w * w));
      const float slope =
          w * (twice_sqrt_2_over_pi + 3.0f * twice_sqrt_2_over_pi * cubic * (w * w));
      const auto s = simd::sigmoid<simd::accuracy_of<A>()>(argument);
      return d * (s.value + s.value * s.complement * slope);
    };
    simd::map<simd::Ties::away>(out, n, gradient, dy + begin, x + begin);
  };
  in_rows_or_blocks("gptbench::gelu_backward", dx, a.fp8, a.n, a.C, make);
}

template <class A>
void residual_forward(Queue&, const ResidualForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const residual = static_cast<const A*>(a.residual);
  const A* const x = static_cast<const A*>(a.x);
  if (a.dropout.rate == 0.0) {
    parallel_blocks("gptbench::residual_forward", a.R * a.C, [=](int64_t begin, int64_t end) {
      if (residual != nullptr) {
        simd::map<simd::Ties::to_even>(
            y + begin, end - begin, [](float u, float v) { return u + v; }, residual + begin,
            x + begin);
      } else {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) y[i] = x[i];
      }
    });
    return;
  }
  const DropoutFactors factors(a.dropout);
  const GlobalRows rows = a.rows;
  const int64_t C = a.C;
  parallel("gptbench::residual_forward_dropout", a.R, [=](int64_t r) {
    float factor[dropout_chunk];
    const int64_t first_element = global_row(rows, r) * C;
    for (int64_t c0 = 0; c0 < C; c0 += dropout_chunk) {
      const int64_t count = std::min(dropout_chunk, C - c0);
      const int64_t first = r * C + c0;
      factors.fill(factor, first_element + c0, count);
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
  residual_forward<A>(queue, ResidualForward{a.dx, nullptr, a.dy, a.R, a.C, a.dropout, a.rows});
}

template <class A>
void swiglu_forward(Queue&, const SwigluForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const x = static_cast<const A*>(a.x);
  const int64_t F = a.F;
  const auto make = [=](A* out, int64_t r, int64_t f, int64_t n) {
    const A* const gate = x + 2 * r * F + f;
    const auto interval = simd::Interval::symmetric(simd::sigmoid_end);
    const auto swiglu = [=](float z, float v) __attribute__((always_inline)) {
      return z * v * simd::sigmoid<simd::accuracy_of<A>()>(interval.nearest(z)).value;
    };
    simd::map<simd::Ties::away>(out, n, swiglu, gate, gate + F);
  };
  if (a.fp8.wanted())
    make_copied<1>("gptbench::swiglu_forward", y, a.fp8, a.R, F,
                   [=](A* const* out, int64_t r, int64_t f, int64_t n) { make(out[0], r, f, n); });
  else
    parallel("gptbench::swiglu_forward", a.R, [=](int64_t r) { make(y + r * F, r, 0, F); });
}

template <class A>
void swiglu_backward(Queue&, const SwigluBackward& a) {
  A* const dx = static_cast<A*>(a.dx);
  const A* const dy = static_cast<const A*>(a.dy);
  const A* const x = static_cast<const A*>(a.x);
  const int64_t F = a.F;
  const auto make = [=](A* dgate, A* dvalue, int64_t r, int64_t f, int64_t n) {
    const A* const gate = x + 2 * r * F + f;
    const auto interval = simd::Interval::symmetric(simd::sigmoid_end);
    const auto gradients = [=](float d, float z, float v) __attribute__((always_inline)) {
      const auto s = simd::sigmoid<simd::accuracy_of<A>()>(interval.nearest(z));
      const float ds = d * s.value;
      return simd::Two{ds * v * (1.0f + z * s.complement), ds * z};
    };
    simd::map_to_two<simd::Ties::away>(dgate, dvalue, n, gradients, dy + r * F + f, gate, gate + F);
  };
  if (a.fp8.wanted())
    make_copied<2>(
        "gptbench::swiglu_backward", dx, a.fp8, a.R, F,
        [=](A* const* out, int64_t r, int64_t f, int64_t n) { make(out[0], out[1], r, f, n); });
  else
    parallel("gptbench::swiglu_backward", a.R,
             [=](int64_t r) { make(dx + 2 * r * F, dx + (2 * r + 1) * F, r, 0, F); });
}

template <class A>
void tanh_forward(Queue&, const TanhForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const x = static_cast<const A*>(a.x);
  parallel_blocks("gptbench::tanh_forward", a.n, [=](int64_t begin, int64_t end) {
    simd::map<simd::Ties::away>(
        y + begin, end - begin, [](float v) { return simd::tanh(v); }, x + begin);
  });
}

template <class A>
void tanh_backward(Queue&, const TanhBackward& a) {
  A* const dx = static_cast<A*>(a.dx);
  const A* const dy = static_cast<const A*>(a.dy);
  const A* const y = static_cast<const A*>(a.y);
  parallel_blocks("gptbench::tanh_backward", a.n, [=](int64_t begin, int64_t end) {
    simd::map<simd::Ties::to_even>(
        dx + begin, end - begin, [](float d, float t) { return d * (1.0f - t * t); }, dy + begin,
        y + begin);
  });
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(gelu_forward, GeluForward);
GPTBENCH_HOST_KERNEL(gelu_backward, GeluBackward);
GPTBENCH_HOST_KERNEL(residual_forward, ResidualForward);
GPTBENCH_HOST_KERNEL(dropout_backward, DropoutBackward);
GPTBENCH_HOST_KERNEL(swiglu_forward, SwigluForward);
GPTBENCH_HOST_KERNEL(swiglu_backward, SwigluBackward);
GPTBENCH_HOST_KERNEL(tanh_forward, TanhForward);
GPTBENCH_HOST_KERNEL(tanh_backward, TanhBackward);
}  // namespace gptbench
