// GELU, SwiGLU and tanh. Bytes moved are those of the arrays named in kernels.h, each once.
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

constexpr float sqrt_2_over_pi = 0.79788456080286535588f;
constexpr float cubic = 0.044715f;

// x/2 (1 + tanh u) = x sigmoid(2 u), u = sqrt(2/pi) (x + cubic x^3).
template <class A>
__device__ inline float sigmoid_of_gelu(float x) {
  const float u = sqrt_2_over_pi * (x + cubic * x * x * x);
  return divide<A>(1.0f, 1.0f + exp_of<A>(-2.0f * u));
}

template <class A>
struct GeluForwardElements {
  A* y;
  const A* x;

  template <int N>
  __device__ void at(int64_t i) const {
    float v[N];
    load<N>(v, x + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) v[j] *= sigmoid_of_gelu<A>(v[j]);
    store<N>(y + i, v);
  }
};

template <class A>
struct GeluBackwardElements {
  A* dx;
  const A* dy;
  const A* x;

  template <int N>
  __device__ void at(int64_t i) const {
    float v[N], g[N];
    load<N>(v, x + i);
    load<N>(g, dy + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) {
      // Beyond 16 the derivative is 0 or 1 to the last bit, and x^2 may overflow; NaN stays.
      const float z = v[j] < -16.0f ? -16.0f : v[j] > 16.0f ? 16.0f : v[j];
      const float s = sigmoid_of_gelu<A>(z);
      const float du = 2.0f * sqrt_2_over_pi * (1.0f + 3.0f * cubic * z * z);
      g[j] *= s + z * s * (1.0f - s) * du;
    }
    store<N>(dx + i, g);
  }
};

// Of a row of x: gate in columns 0 .. F-1, value in F .. 2F-1.
template <class A>
struct SwigluForwardRows {
  A* y;
  const A* x;
  int64_t F;

  __device__ int64_t row(int64_t r) const { return r; }
  template <int N>
  __device__ void at(int64_t r, int64_t f) const {
    float gate[N], value[N];
    load<N>(gate, x + 2 * r * F + f);
    load<N>(value, x + (2 * r + 1) * F + f);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) value[j] *= gate[j] * divide<A>(1.0f, 1.0f + exp_of<A>(-gate[j]));
    store<N>(y + r * F + f, value);
  }
};

template <class A>
struct SwigluBackwardRows {
  A* dx;
  const A* dy;
  const A* x;
  int64_t F;

  __device__ int64_t row(int64_t r) const { return r; }
  template <int N>
  __device__ void at(int64_t r, int64_t f) const {
    float gate[N], value[N], g[N];
    load<N>(gate, x + 2 * r * F + f);
    load<N>(value, x + (2 * r + 1) * F + f);
    load<N>(g, dy + r * F + f);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) {
      const float s = divide<A>(1.0f, 1.0f + exp_of<A>(-gate[j]));
      const float dgate = g[j] * value[j] * s * (1.0f + gate[j] * (1.0f - s));
      value[j] = g[j] * gate[j] * s;
      gate[j] = dgate;
    }
    store<N>(dx + 2 * r * F + f, gate);
    store<N>(dx + (2 * r + 1) * F + f, value);
  }
};

template <class A>
struct TanhForwardElements {
  A* y;
  const A* x;

  template <int N>
  __device__ void at(int64_t i) const {
    float v[N];
    load<N>(v, x + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) v[j] = tanhf(v[j]);
    store<N>(y + i, v);
  }
};

template <class A>
struct TanhBackwardElements {
  A* dx;
  const A* dy;
  const A* y;

  template <int N>
  __device__ void at(int64_t i) const {
    float v[N], g[N];
    load<N>(v, y + i);
    load<N>(g, dy + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) g[j] *= 1.0f - v[j] * v[j];
    store<N>(dx + i, g);
  }
};

}  // namespace

template <class A>
void gelu_forward(Queue& queue, const GeluForward& a) {
  const GeluForwardElements<A> f{static_cast<A*>(a.y), static_cast<const A*>(a.x)};
  elementwise(queue, f, a.n, {{a.y, sizeof(A)}, {a.x, sizeof(A)}});
}

template <class A>
void gelu_backward(Queue& queue, const GeluBackward& a) {
  const GeluBackwardElements<A> f{static_cast<A*>(a.dx), static_cast<const A*>(a.dy),
                                  static_cast<const A*>(a.x)};
  elementwise(queue, f, a.n, {{a.dx, sizeof(A)}, {a.dy, sizeof(A)}, {a.x, sizeof(A)}});
}

template <class A>
void swiglu_forward(Queue& queue, const SwigluForward& a) {
  const SwigluForwardRows<A> f{static_cast<A*>(a.y), static_cast<const A*>(a.x), a.F};
  over_rows(queue, f, a.R, a.F, {{a.y, sizeof(A), a.F}, {a.x, sizeof(A), a.F}});
}

template <class A>
void swiglu_backward(Queue& queue, const SwigluBackward& a) {
  const SwigluBackwardRows<A> f{static_cast<A*>(a.dx), static_cast<const A*>(a.dy),
                                static_cast<const A*>(a.x), a.F};
  over_rows(queue, f, a.R, a.F,
            {{a.dx, sizeof(A), a.F}, {a.dy, sizeof(A), a.F}, {a.x, sizeof(A), a.F}});
}

template <class A>
void tanh_forward(Queue& queue, const TanhForward& a) {
  const TanhForwardElements<A> f{static_cast<A*>(a.y), static_cast<const A*>(a.x)};
  elementwise(queue, f, a.n, {{a.y, sizeof(A)}, {a.x, sizeof(A)}});
}

template <class A>
void tanh_backward(Queue& queue, const TanhBackward& a) {
  const TanhBackwardElements<A> f{static_cast<A*>(a.dx), static_cast<const A*>(a.dy),
                                  static_cast<const A*>(a.y)};
  elementwise(queue, f, a.n, {{a.dx, sizeof(A)}, {a.dy, sizeof(A)}, {a.y, sizeof(A)}});
}

}  // namespace gptbench::cuda

namespace gptbench {
GPTBENCH_CUDA_KERNEL(gelu_forward, GeluForward);
GPTBENCH_CUDA_KERNEL(gelu_backward, GeluBackward);
GPTBENCH_CUDA_KERNEL(swiglu_forward, SwigluForward);
GPTBENCH_CUDA_KERNEL(swiglu_backward, SwigluBackward);
GPTBENCH_CUDA_KERNEL(tanh_forward, TanhForward);
GPTBENCH_CUDA_KERNEL(tanh_backward, TanhBackward);
}  // namespace gptbench
