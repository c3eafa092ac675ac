// GELU, SwiGLU and tanh. Bytes moved are those of the arrays named in kernels.h, each once, and of
// fp8 copies.
#include "cuda/kernels/fp8.cuh"
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

// Elementwise over all elements, or in rows of C with an fp8 copy; then y may be null.
template <class A>
struct GeluForwardElements {
  static constexpr int parts = 1;
  A* y;
  const A* x;
  int64_t C;

  template <int N>
  __device__ void make(float (&v)[N], int64_t i) const {
    load<N>(v, x + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) v[j] *= sigmoid_of_gelu<A>(v[j]);
  }
  template <int N>
  __device__ void at(int64_t i) const {
    float v[N];
    make(v, i);
    store<N>(y + i, v);
  }
  template <int N>
  __device__ void values(float (&v)[parts][N], int64_t r, int64_t c) const {
    make(v[0], r * C + c);
    if (y != nullptr) store<N>(y + r * C + c, v[0]);
    round_to<A>(v[0]);
  }
};

template <class A>
struct GeluBackwardElements {
  static constexpr int parts = 1;
  A* dx;
  const A* dy;
  const A* x;
  int64_t C;

  template <int N>
  __device__ void make(float (&g)[N], int64_t i) const {
    float v[N];
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
  }
  template <int N>
  __device__ void at(int64_t i) const {
    float g[N];
    make(g, i);
    store<N>(dx + i, g);
  }
  template <int N>
  __device__ void values(float (&g)[parts][N], int64_t r, int64_t c) const {
    make(g[0], r * C + c);
    if (dx != nullptr) store<N>(dx + r * C + c, g[0]);
    round_to<A>(g[0]);
  }
};

// The same in rows whose columns are summed.
template <class A>
struct GeluBackwardColumns {
  GeluBackwardElements<A> elements;

  template <int N>
  __device__ void at(float (&v)[1][N], int64_t r, int64_t c) const {
    elements.template values<N>(v, r, c);
  }
};

// A row of x holds the gate in columns 0 .. F-1, the value in F .. 2F-1.
template <class A>
struct SwigluForwardRows {
  static constexpr int parts = 1;
  A* y;
  const A* x;
  int64_t F;

  template <int N>
  __device__ void make(float (&value)[N], int64_t r, int64_t f) const {
    float gate[N];
    load<N>(gate, x + 2 * r * F + f);
    load<N>(value, x + (2 * r + 1) * F + f);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) value[j] *= gate[j] * divide<A>(1.0f, 1.0f + exp_of<A>(-gate[j]));
  }
  __device__ int64_t row(int64_t r) const { return r; }
  template <int N>
  __device__ void at(int64_t r, int64_t f) const {
    float value[N];
    make(value, r, f);
    store<N>(y + r * F + f, value);
  }
  template <int N>
  __device__ void values(float (&value)[parts][N], int64_t r, int64_t f) const {
    make(value[0], r, f);
    if (y != nullptr) store<N>(y + r * F + f, value[0]);
    round_to<A>(value[0]);
  }
};

template <class A>
struct SwigluBackwardRows {
  static constexpr int parts = 2;
  A* dx;
  const A* dy;
  const A* x;
  int64_t F;

  template <int N>
  __device__ void make(float (&gate)[N], float (&value)[N], int64_t r, int64_t f) const {
    float g[N];
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
  }
  template <int N>
  __device__ void put(const float (&gate)[N], const float (&value)[N], int64_t r, int64_t f) const {
    store<N>(dx + 2 * r * F + f, gate);
    store<N>(dx + (2 * r + 1) * F + f, value);
  }
  __device__ int64_t row(int64_t r) const { return r; }
  template <int N>
  __device__ void at(int64_t r, int64_t f) const {
    float gate[N], value[N];
    make(gate, value, r, f);
    put(gate, value, r, f);
  }
  template <int N>
  __device__ void values(float (&both)[parts][N], int64_t r, int64_t f) const {
    make(both[0], both[1], r, f);
    if (dx != nullptr) put(both[0], both[1], r, f);
    round_to<A>(both[0]);
    round_to<A>(both[1]);
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
  const GeluForwardElements<A> f{static_cast<A*>(a.y), static_cast<const A*>(a.x), a.C};
  if (a.fp8.wanted() && a.n > 0)
    make_copied(queue, f, a.fp8, a.n / a.C, a.C,
                rows_are_aligned(a.C, {{a.y, sizeof(A), a.C}, {a.x, sizeof(A), a.C}}));
  else
    elementwise(queue, f, a.n, {{a.y, sizeof(A)}, {a.x, sizeof(A)}});
}

template <class A>
void gelu_backward(Queue& queue, const GeluBackward& a) {
  const GeluBackwardElements<A> f{static_cast<A*>(a.dx), static_cast<const A*>(a.dy),
                                  static_cast<const A*>(a.x), a.C};
  const bool in_rows = (a.fp8.wanted() || a.fp8.sums != nullptr) && a.n > 0;
  const bool aligned =
      in_rows && rows_are_aligned(
                     a.C, {{a.dx, sizeof(A), a.C}, {a.dy, sizeof(A), a.C}, {a.x, sizeof(A), a.C}});
  if (in_rows && a.fp8.wanted())
    make_copied(queue, f, a.fp8, a.n / a.C, a.C, aligned);
  else if (in_rows)
    column_sum<1>(queue, GeluBackwardColumns<A>{f}, {{static_cast<float*>(a.fp8.sums)}}, a.n / a.C,
                  a.C, a.fp8.workspace, aligned);
  else
    elementwise(queue, f, a.n, {{a.dx, sizeof(A)}, {a.dy, sizeof(A)}, {a.x, sizeof(A)}});
}

template <class A>
void swiglu_forward(Queue& queue, const SwigluForward& a) {
  const SwigluForwardRows<A> f{static_cast<A*>(a.y), static_cast<const A*>(a.x), a.F};
  const std::initializer_list<TouchedRows> touched = {{a.y, sizeof(A), a.F}, {a.x, sizeof(A), a.F}};
  if (a.fp8.wanted())
    make_copied(queue, f, a.fp8, a.R, a.F, rows_are_aligned(a.F, touched));
  else
    over_rows(queue, f, a.R, a.F, touched);
}

template <class A>
void swiglu_backward(Queue& queue, const SwigluBackward& a) {
  const SwigluBackwardRows<A> f{static_cast<A*>(a.dx), static_cast<const A*>(a.dy),
                                static_cast<const A*>(a.x), a.F};
  const std::initializer_list<TouchedRows> touched = {
      {a.dx, sizeof(A), a.F}, {a.dy, sizeof(A), a.F}, {a.x, sizeof(A), a.F}};
  if (a.fp8.wanted())
    make_copied(queue, f, a.fp8, a.R, a.F, rows_are_aligned(a.F, touched));
  else
    over_rows(queue, f, a.R, a.F, touched);
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

GPTBENCH_ACTIVATION_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
