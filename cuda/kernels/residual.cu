// Residual connections and dropout: 3 R C elements of A forward, 2 R C backward.
#include "cuda/kernels/dropout.cuh"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

// y = residual (or 0) + dropout factor x.
template <class A>
struct ResidualRows {
  A* y;
  const A* residual;
  const A* x;
  int64_t C;
  DropoutMask mask;
  GlobalRows rows;

  explicit ResidualRows(const ResidualForward& a)
      : y(static_cast<A*>(a.y)),
        residual(static_cast<const A*>(a.residual)),
        x(static_cast<const A*>(a.x)),
        C(a.C),
        mask(a.dropout),
        rows(a.rows) {}

  struct Row {
    int64_t first, global_first;
  };
  __device__ Row row(int64_t r) const { return {r * C, mask.on ? global_row(rows, r) * C : 0}; }

  template <int N>
  __device__ void at(const Row& row, int64_t c) const {
    float v[N];
    load<N>(v, x + row.first + c);
    if (mask.on) {
      float factor[N];
      mask.factors<N>(factor, row.global_first + c);
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j) v[j] *= factor[j];
    }
    if (residual != nullptr) {
      float before[N];
      load<N>(before, residual + row.first + c);
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j) v[j] += before[j];
    }
    store<N>(y + row.first + c, v);
  }
};

}  // namespace

template <class A>
void residual_forward(Queue& queue, const ResidualForward& a) {
  over_rows(queue, ResidualRows<A>(a), a.R, a.C,
            {{a.y, sizeof(A), a.C}, {a.residual, sizeof(A), a.C}, {a.x, sizeof(A), a.C}});
}

template <class A>
void dropout_backward(Queue& queue, const DropoutBackward& a) {
  residual_forward<A>(queue, as_residual(a));
}

GPTBENCH_RESIDUAL_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
