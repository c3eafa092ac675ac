// STREAM's triad: 3 n elements of f32.
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

struct TriadElements {
  float* y;
  const float* a;
  const float* b;
  float scale;

  template <int N>
  __device__ void at(int64_t i) const {
    float v[N], scaled[N];
    load<N>(v, a + i);
    load<N>(scaled, b + i);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) v[j] += scale * scaled[j];
    store<N>(y + i, v);
  }
};

}  // namespace

template <class A>
void triad(Queue& queue, const Triad& t) {
  const TriadElements f{static_cast<float*>(t.y), static_cast<const float*>(t.a),
                        static_cast<const float*>(t.b), static_cast<float>(t.scale)};
  elementwise(queue, f, t.n, {{t.y, sizeof(float)}, {t.a, sizeof(float)}, {t.b, sizeof(float)}});
}

GPTBENCH_TRIAD_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
