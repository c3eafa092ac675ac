// Weights as they are drawn at set-up; writes y once.
#include "base/normal.h"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

constexpr int draw_threads = 256;

// A thread takes a block of four random words, which are four elements of the stream, as far as
// they are asked for.
template <class T>
__global__ void draw_weights_kernel(T* y, DrawWeights a, int64_t blocks) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * draw_threads;
  for (int64_t b = static_cast<int64_t>(blockIdx.x) * draw_threads + threadIdx.x; b < blocks;
       b += stride) {
    const uint64_t block = a.first / 4 + static_cast<uint64_t>(b);
    const PhiloxWords words = random_words(a.seed, RandomStream::weights, a.tensor, block);
    const normal::Pair low = normal::pair_of(words.word[0], words.word[1], a.std);
    const normal::Pair high = normal::pair_of(words.word[2], words.word[3], a.std);
    const float numbers[4] = {low.first, low.second, high.first, high.second};
    const int64_t at = static_cast<int64_t>(4 * block - a.first);  // may begin before y
    GPTBENCH_UNROLL
    for (int i = 0; i < 4; ++i)
      if (at + i >= 0 && at + i < a.n) y[at + i] = from_float<T>(numbers[i]);
  }
}

template <class T>
struct FillOnes {
  T* y;

  template <int N>
  __device__ void at(int64_t i) const {
    float one[N];
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) one[j] = 1.0f;
    store<N>(y + i, one);
  }
};

template <class T>
void draw(Queue& queue, const DrawWeights& a) {
  T* const y = static_cast<T*>(a.y);
  if (a.ones) return elementwise(queue, FillOnes<T>{y}, a.n, {{a.y, sizeof(T)}});
  const uint64_t end = a.first + static_cast<uint64_t>(a.n);
  const int64_t blocks = static_cast<int64_t>((end + 3) / 4 - a.first / 4);
  launch(GPTBENCH_KERNEL(draw_weights_kernel<T>),
         dim3{blocks_for(ceil_div(blocks, draw_threads), 8), 1, 1}, draw_threads, 0,
         stream_of(queue), y, a, blocks);
}

}  // namespace

template <class A>
void draw_weights(Queue& queue, const DrawWeights& a) {
  if (a.n == 0) return;
  if (a.type == DType::f32)
    draw<float>(queue, a);
  else
    draw<A>(queue, a);
}

GPTBENCH_WEIGHTS_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
