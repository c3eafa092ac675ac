#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "cuda/gemm_kernels.h"

namespace gptbench {
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
__device__ uint32_t mixed(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

__device__ void store(float* x, float value) {
  *x = value;
}
__device__ void store(__nv_bfloat16* x, float value) {
  *x = __float2bfloat16(value);
}
__device__ void store(__half* x, float value) {
  *x = __float2half(value);
}

__device__ void store(__nv_fp8_e4m3* x, float value) {
  *x = __nv_fp8_e4m3(value);
}
__device__ void store(__nv_fp8_e5m2* x, float value) {
  *x = __nv_fp8_e5m2(value);
}

// The sum of the four bytes of a random word is close to normal: mean 510, deviation 147.8.
template <class T>
__global__ void fill_random_kernel(T* x, int64_t n, float scale, uint32_t seed) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * threads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x; i < n; i += stride) {
    const uint32_t word = mixed(static_cast<uint32_t>(i) ^ mixed(seed));
    const uint32_t sum =
        (word & 255u) + ((word >> 8) & 255u) + ((word >> 16) & 255u) + (word >> 24);
    store(x + i, scale * (static_cast<float>(sum) - 510.0f) / 147.8f);
  }
}

}  // namespace

void add_f32(cudaStream_t stream, float* y, const float* x, int64_t n) {
  if (n > 0) add_f32_kernel<<<blocks_for(n), threads, 0, stream>>>(y, x, n);
}

void fill_random(cudaStream_t stream, void* x, int64_t n, DType type, float scale, uint32_t seed) {
  if (n <= 0) return;
  const unsigned int blocks = blocks_for(n);
  if (type == DType::bf16)
    fill_random_kernel<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(x), n, scale,
                                                       seed);
  else if (type == DType::f16)
    fill_random_kernel<<<blocks, threads, 0, stream>>>(static_cast<__half*>(x), n, scale, seed);
  else if (type == DType::fp8_e4m3)
    fill_random_kernel<<<blocks, threads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(x), n, scale,
                                                       seed);
  else if (type == DType::fp8_e5m2)
    fill_random_kernel<<<blocks, threads, 0, stream>>>(static_cast<__nv_fp8_e5m2*>(x), n, scale,
                                                       seed);
  else
    fill_random_kernel<<<blocks, threads, 0, stream>>>(static_cast<float*>(x), n, scale, seed);
}

}  // namespace gptbench
