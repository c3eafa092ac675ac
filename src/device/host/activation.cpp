#include "device/host/fp8.h"
#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_map.h"
#include "device/host/simd_math.h"

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

GPTBENCH_ACTIVATION_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
