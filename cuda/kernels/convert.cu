// Conversion between storage types: R C elements of both, y once more where it is added to.
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

template <class Y, class X>
struct ConvertRows {
  Y* y;
  const X* x;
  int64_t y_row, x_row;
  bool accumulate;

  __device__ int64_t row(int64_t r) const { return r; }
  template <int N>
  __device__ void at(int64_t r, int64_t c) const {
    convert<N>(y + r * y_row + c, x + r * x_row + c);
  }
  template <int N>
  __device__ void at(int64_t i) const {
    convert<N>(y + i, x + i);
  }

 private:
  template <int N>
  __device__ void convert(Y* to, const X* from) const {
    float v[N];
    load<N>(v, from);
    if (accumulate) {
      float before[N];
      load<N>(before, to);
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j) v[j] += before[j];
    }
    store<N>(to, v);
  }
};

template <class Y, class X>
void convert_types(Queue& queue, const Convert& a) {
  const ConvertRows<Y, X> f{static_cast<Y*>(a.y), static_cast<const X*>(a.x), a.y_row, a.x_row,
                            a.accumulate};
  if (a.R == 1 || (a.y_row == a.C && a.x_row == a.C))
    elementwise(queue, f, a.R * a.C, {{a.y, sizeof(Y)}, {a.x, sizeof(X)}});
  else
    over_rows(queue, f, a.R, a.C, {{a.y, sizeof(Y), a.y_row}, {a.x, sizeof(X), a.x_row}});
}

}  // namespace

template <class A>
void convert(Queue& queue, const Convert& a) {
  const bool to_s = a.y_type == DType::f32, from_s = a.x_type == DType::f32;
  if (to_s && from_s)
    convert_types<float, float>(queue, a);
  else if (to_s)
    convert_types<float, A>(queue, a);
  else if (from_s)
    convert_types<A, float>(queue, a);
  else
    convert_types<A, A>(queue, a);
}

GPTBENCH_CONVERT_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
