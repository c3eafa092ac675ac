#include "cuda/gemm_kernels.h"

#include "base/fp8.h"
#include "cuda/kernels/number.cuh"

#if !defined(GPTBENCH_EMULATION)
#include <cuda_fp8.h>
#endif

namespace gptbench {
namespace cuda {
namespace {

constexpr int threads = 256;

unsigned int blocks_for(int64_t n) {
  constexpr int64_t most = 65535;
  const int64_t blocks = (n + threads - 1) / threads;
  return static_cast<unsigned int>(blocks < most ? blocks : most);
}

__global__ void add_f32_kernel(float* y, const float* x, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * threads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; i < n; i += stride)
    y[i] += x[i];
}

// A mixing function of 32 bits (Murmur3's last step).
__device__ inline uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// fp8 of one of the two formats, a byte.
template <DType type>
struct Fp8 {
  uint8_t bits;
};

template <class T>
__device__ inline void store_number(T* x, float value) {
  *x = from_float<T>(value);
}
template <DType type>
__device__ inline void store_number(Fp8<type>* x, float value) {
#if defined(GPTBENCH_EMULATION)
  x->bits = static_cast<uint8_t>(fp8_encode(value, fp8_format(type)));
#else
  x->bits =
      __nv_cvt_float_to_fp8(value, __NV_SATFINITE, type == DType::fp8_e5m2 ? __NV_E5M2 : __NV_E4M3);
#endif
}

// The sum of the four bytes of a random word is close to normal: mean 510, deviation 147.8.
template <class T>
__global__ void fill_random_kernel(T* x, int64_t n, float scale, uint32_t seed) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * threads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; i < n; i += stride) {
    const uint32_t word = mixed(static_cast<uint32_t>(i) ^ mixed(seed));
    const uint32_t sum =
        (word & 255u) + ((word >> 8) & 255u) + ((word >> 16) & 255u) + (word >> 24);
    store_number(x + i, scale * (static_cast<float>(sum) - 510.0f) / 147.8f);
  }
}

template <class T>
void fill(cudaStream_t stream, void* x, int64_t n, float scale, uint32_t seed) {
  launch(GPTBENCH_KERNEL(fill_random_kernel<T>), dim3{blocks_for(n), 1, 1}, threads, 0, stream,
         static_cast<T*>(x), n, scale, seed);
}

void add(cudaStream_t stream, float* y, const float* x, int64_t n) {
  launch(GPTBENCH_KERNEL(add_f32_kernel), dim3{blocks_for(n), 1, 1}, threads, 0, stream, y, x, n);
}

}  // namespace
}  // namespace cuda

void add_f32(cudaStream_t stream, float* y, const float* x, int64_t n) {
  if (n > 0) cuda::add(stream, y, x, n);
}

void fill_random(cudaStream_t stream, void* x, int64_t n, DType type, float scale, uint32_t seed) {
  if (n <= 0) return;
  switch (type) {
    case DType::bf16:
      return cuda::fill<bfloat16>(stream, x, n, scale, seed);
    case DType::f16:
      return cuda::fill<float16>(stream, x, n, scale, seed);
    case DType::fp8_e4m3:
      return cuda::fill<cuda::Fp8<DType::fp8_e4m3>>(stream, x, n, scale, seed);
    case DType::fp8_e5m2:
      return cuda::fill<cuda::Fp8<DType::fp8_e5m2>>(stream, x, n, scale, seed);
    default:
      return cuda::fill<float>(stream, x, n, scale, seed);
  }
}

}  // namespace gptbench
