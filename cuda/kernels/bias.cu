// Gradient of a bias: R N elements of A.
#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

template <class A>
struct GradientRows {
  const A* dy;
  int64_t C;

  template <int N>
  __device__ void at(float (&v)[1][N], int64_t r, int64_t c) const {
    load<N>(v[0], dy + r * C + c);
  }
};

}  // namespace

template <class A>
void bias_backward(Queue& queue, const BiasBackward& a) {
  const GradientRows<A> f{static_cast<const A*>(a.dy), a.N};
  column_sum<1>(queue, f, {{static_cast<float*>(a.dbias)}}, a.R, a.N, a.workspace,
                rows_are_aligned(a.N, {{a.dy, sizeof(A), a.N}}));
}

GPTBENCH_BIAS_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
