// Rotary position embedding, in place: 2 R heads D elements of A. A thread turns the same N pairs
// of every head of a row, so that their angles are computed once.
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

// The angle of position p and pair d is p theta^(-2d/D). It is reduced to a turn in double: at
// position 100,000 a float would be off by 0.004.
template <class A, int N>
__global__ void rotary_kernel(A* x, int64_t R, int64_t heads, int64_t D, int64_t row,
                              double log2_theta, double direction, int64_t T_local,
                              Positions positions) {
  const int64_t half = D / 2, groups = half / N;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < R * groups;
       i += stride) {
    const int64_t r = i / groups, d = (i - r * groups) * N;
    const double position = direction * static_cast<double>(position_of(positions, r % T_local)) *
                            0.15915494309189533577;
    float cosine[N], sine[N];
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) {
      const double exponent = -2.0 * static_cast<double>(d + j) / static_cast<double>(D);
      const double turns = position * exp2(exponent * log2_theta);
      sincospif(static_cast<float>(2.0 * (turns - rint(turns))), &sine[j], &cosine[j]);
    }
    A* const first = x + r * row + d;
    for (int64_t h = 0; h < heads; ++h) {
      float x0[N], x1[N];
      load<N>(x0, first + h * D);
      load<N>(x1, first + h * D + half);
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j) {
        const float rotated = x0[j] * cosine[j] - x1[j] * sine[j];
        x1[j] = x1[j] * cosine[j] + x0[j] * sine[j];
        x0[j] = rotated;
      }
      store<N>(first + h * D, x0);
      store<N>(first + h * D + half, x1);
    }
  }
}

}  // namespace

template <class A>
void rotary(Queue& queue, const Rotary& a) {
  if (a.R == 0 || a.heads == 0) return;
  constexpr int threads = 256;
  const bool aligned = rows_are_aligned(a.D / 2, {{a.x, sizeof(A), a.row}});
  const int64_t work = a.R * (a.D / 2) / (aligned ? vector_width : 1);
  const dim3 grid{blocks_for(ceil_div(work, threads), 16), 1, 1};
  const double log2_theta = std::log2(a.theta), direction = a.inverse ? -1.0 : 1.0;
  A* const x = static_cast<A*>(a.x);
  if (aligned)
    launch(GPTBENCH_KERNEL(rotary_kernel<A, vector_width>), grid, threads, 0, stream_of(queue), x,
           a.R, a.heads, a.D, a.row, log2_theta, direction, a.T_local, a.positions);
  else
    launch(GPTBENCH_KERNEL(rotary_kernel<A, 1>), grid, threads, 0, stream_of(queue), x, a.R,
           a.heads, a.D, a.row, log2_theta, direction, a.T_local, a.positions);
}

GPTBENCH_ROTARY_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
