// fp8 copies with their largest magnitude, and the scales that follow from it. A conversion reads x
// once and writes a byte an element for each of the two copies.
#include "base/fp8.h"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/reduce.cuh"

#if !defined(GPTBENCH_EMULATION)
#include <cuda_fp8.h>
#endif

namespace gptbench::cuda {
namespace {

// Eight consecutive elements in fp8, the first in the lowest byte.
__device__ inline uint2 encode(const float (&x)[vector_width], float scale, DType type) {
#if defined(GPTBENCH_EMULATION)
  const Fp8Format format = fp8_format(type);
  uint32_t words[2] = {};
  for (int i = 0; i < vector_width; ++i)
    words[i / 4] |= static_cast<uint32_t>(fp8_encode(scale * x[i], format)) << (i % 4 * 8);
  return uint2{words[0], words[1]};
#else
  const __nv_fp8_interpretation_t format = type == DType::fp8_e5m2 ? __NV_E5M2 : __NV_E4M3;
  uint32_t words[2];
  GPTBENCH_UNROLL
  for (int w = 0; w < 2; ++w) {
    const float* const v = x + 4 * w;
    const uint32_t low =
        __nv_cvt_float2_to_fp8x2(make_float2(scale * v[0], scale * v[1]), __NV_SATFINITE, format);
    const uint32_t high =
        __nv_cvt_float2_to_fp8x2(make_float2(scale * v[2], scale * v[3]), __NV_SATFINITE, format);
    words[w] = low | high << 16;
  }
  return uint2{words[0], words[1]};
#endif
}

// Magnitudes as integers, which are ordered as they are; infinity takes part, NaN does not.
__device__ inline int larger_magnitude(int largest, float x) {
  const int bits = static_cast<int>(__float_as_uint(x) & 0x7fffffffu);
  return bits > largest && bits <= 0x7f800000 ? bits : largest;
}

// The largest of the threads of a block goes to amax. A maximum is the same in any order.
__device__ inline void note_amax(float* amax, int largest) {
  GPTBENCH_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) {
    const int other = __shfl_xor_sync(full_warp, largest, bits);
    largest = other > largest ? other : largest;
  }
  if (threadIdx.x % 32 == 0 && largest > 0) atomicMax(reinterpret_cast<int*>(amax), largest);
}

template <class A, int N>
__global__ void fp8_quantize_kernel(uint8_t* y, float* amax, const A* x, const float* scale,
                                    int64_t n, DType type) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const float s = scale[0];
  int largest = 0;
  for (int64_t i = thread * N; i < n; i += stride * N) {
    float v[vector_width] = {};
    if constexpr (N == vector_width) {
      if (i + N <= n) {
        load<N>(v, x + i);
        *reinterpret_cast<uint2*>(y + i) = encode(v, s, type);
      } else {
        for (int j = 0; i + j < n; ++j) v[j] = to_float(x[i + j]);
        const uint2 bytes = encode(v, s, type);
        for (int j = 0; i + j < n; ++j)
          y[i + j] = static_cast<uint8_t>((j < 4 ? bytes.x : bytes.y) >> (j % 4 * 8));
      }
    } else {
      v[0] = to_float(x[i]);
      y[i] = static_cast<uint8_t>(encode(v, s, type).x);
    }
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) largest = larger_magnitude(largest, v[j]);
  }
  note_amax(amax, largest);
}

constexpr int tile = 64;
constexpr int tile_threads = 256;
// Bytes from one column of a tile to the next in shared memory: 16 more, so that eight columns lie
// in different banks.
constexpr int tile_pitch = tile + 16;

// Columns of a tile in shared memory to rows of y, 16 bytes at a time.
__device__ inline void store_columns(uint8_t* y, const uint8_t* turned, int64_t r0, int64_t c0,
                                     int64_t C, int64_t padded) {
  constexpr int pieces = tile / 16;
  for (int item = static_cast<int>(threadIdx.x); item < tile * pieces; item += tile_threads) {
    const int column = item / pieces, row = item % pieces * 16;
    if (c0 + column < C && r0 + row < padded)
      *reinterpret_cast<uint4*>(y + (c0 + column) * padded + r0 + row) =
          *reinterpret_cast<const uint4*>(turned + column * tile_pitch + row);
  }
}

// Tiles of 64 rows by 64 columns turn in shared memory. y may be null.
template <class A, int N>
__global__ void fp8_quantize_transposed_kernel(uint8_t* y, uint8_t* y_transposed, float* amax,
                                               const A* x, const float* scale, int64_t R, int64_t C,
                                               int64_t padded, DType type) {
  GPTBENCH_DYNAMIC_SHARED(uint8_t, turned);
  const int64_t r0 = static_cast<int64_t>(blockIdx.x) * tile;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * tile;
  const float s = scale[0];
  constexpr int vectors = tile / vector_width;  // of a row
  int largest = 0;
  for (int item = static_cast<int>(threadIdx.x); item < tile * vectors; item += tile_threads) {
    const int row = item / vectors, column = item % vectors * vector_width;
    const int64_t r = r0 + row, c = c0 + column;
    float v[vector_width] = {};
    if (r < R) {
      if constexpr (N == vector_width) {
        if (c < C) load<N>(v, x + r * C + c);
      } else {
        for (int j = 0; j < vector_width && c + j < C; ++j) v[j] = to_float(x[r * C + c + j]);
      }
    }
    GPTBENCH_UNROLL
    for (int j = 0; j < vector_width; ++j) largest = larger_magnitude(largest, v[j]);
    const uint2 bytes = encode(v, s, type);
    if (y != nullptr && r < R) {
      if constexpr (N == vector_width) {
        if (c < C) *reinterpret_cast<uint2*>(y + r * C + c) = bytes;
      } else {
        for (int j = 0; j < vector_width && c + j < C; ++j)
          y[r * C + c + j] = static_cast<uint8_t>((j < 4 ? bytes.x : bytes.y) >> (j % 4 * 8));
      }
    }
    // Rows behind the last are zero, whose code is 0.
    GPTBENCH_UNROLL
    for (int j = 0; j < vector_width; ++j)
      turned[(column + j) * tile_pitch + row] =
          static_cast<uint8_t>((j < 4 ? bytes.x : bytes.y) >> (j % 4 * 8));
  }
  __syncthreads();
  store_columns(y_transposed, turned, r0, c0, C, padded);
  note_amax(amax, largest);
}

// N bytes at a time, 16 or 1.
template <int N>
__global__ void fp8_transpose_kernel(uint8_t* y, const uint8_t* x, int64_t R, int64_t C,
                                     int64_t padded) {
  GPTBENCH_DYNAMIC_SHARED(uint8_t, turned);
  const int64_t r0 = static_cast<int64_t>(blockIdx.x) * tile;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * tile;
  constexpr int pieces = tile / N;
  for (int item = static_cast<int>(threadIdx.x); item < tile * pieces; item += tile_threads) {
    const int row = item / pieces, column = item % pieces * N;
    const int64_t r = r0 + row, c = c0 + column;
    const bool inside = r < R && c < C;
    if constexpr (N == 16) {
      uint4 v = {};
      if (inside) v = *reinterpret_cast<const uint4*>(x + r * C + c);
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j)
        turned[(column + j) * tile_pitch + row] = static_cast<uint8_t>(words[j / 4] >> (j % 4 * 8));
    } else {
      turned[column * tile_pitch + row] = inside ? x[r * C + c] : static_cast<uint8_t>(0);
    }
  }
  __syncthreads();
  store_columns(y, turned, r0, c0, C, padded);
}

constexpr int tensors_a_block = 32, slices = 8;

// A warp's lanes are tensors, its warps slices of the history.
__global__ void fp8_update_scales_kernel(Fp8UpdateScales a) {
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % tensors_a_block;
  const int slice = static_cast<int>(threadIdx.x) / tensors_a_block;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * tensors_a_block + lane;
  float largest = 0.0f;
  int64_t position = 0;
  if (i < a.count) {
    position = a.position[i];
    for (int64_t step = slice; step < a.length; step += slices) {
      float* const entry = a.history + step * a.count + i;
      if (step == position) *entry = a.amax[i];
      largest = fmaxf(largest, *entry);
    }
  }
  shared[slice * tensors_a_block + lane] = largest;
  __syncthreads();
  if (slice != 0 || i >= a.count) return;
  for (int other = 1; other < slices; ++other)
    largest = fmaxf(largest, shared[other * tensors_a_block + lane]);
  const DType type = i < a.e4m3 ? DType::fp8_e4m3 : DType::fp8_e5m2;
  const float scale = fp8_scale(largest, fp8_format(type), a.margin, a.scale[i]);
  a.scale[i] = scale;
  a.inverse[i] = 1.0f / scale;
  a.amax[i] = 0.0f;
  a.position[i] = static_cast<int32_t>((position + 1) % a.length);
}

// Of a tile a block. Rows, of which a batch may have millions, along x: y ends at 65535.
dim3 tiles_of(int64_t R, int64_t C) {
  return {static_cast<unsigned>(ceil_div(R, tile)), static_cast<unsigned>(ceil_div(C, tile)), 1};
}

bool is_aligned(const void* p, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace

template <class A>
void fp8_quantize(Queue& queue, const Fp8Quantize& a) {
  if (a.R == 0 || a.C == 0) return;
  const A* const x = static_cast<const A*>(a.x);
  uint8_t* const y = static_cast<uint8_t*>(a.y);
  uint8_t* const y_transposed = static_cast<uint8_t*>(a.y_transposed);
  const bool aligned = is_aligned(x, vector_bytes) && (y == nullptr || is_aligned(y, 8));
  if (y_transposed == nullptr) {
    constexpr int threads = 256;
    const int64_t n = a.R * a.C;
    const int64_t width = aligned ? vector_width : 1;
    const dim3 grid{blocks_for(ceil_div(n, threads * width), 8), 1, 1};
    if (aligned)
      launch(GPTBENCH_KERNEL(fp8_quantize_kernel<A, vector_width>), grid, threads, 0,
             stream_of(queue), y, a.amax, x, a.scale, n, a.type);
    else
      launch(GPTBENCH_KERNEL(fp8_quantize_kernel<A, 1>), grid, threads, 0, stream_of(queue), y,
             a.amax, x, a.scale, n, a.type);
    return;
  }
  const int64_t padded = padded_rows(a.R);
  const dim3 grid = tiles_of(a.R, a.C);
  if (aligned && a.C % vector_width == 0)
    launch(GPTBENCH_KERNEL(fp8_quantize_transposed_kernel<A, vector_width>), grid, tile_threads,
           tile * tile_pitch, stream_of(queue), y, y_transposed, a.amax, x, a.scale, a.R, a.C,
           padded, a.type);
  else
    launch(GPTBENCH_KERNEL(fp8_quantize_transposed_kernel<A, 1>), grid, tile_threads,
           tile * tile_pitch, stream_of(queue), y, y_transposed, a.amax, x, a.scale, a.R, a.C,
           padded, a.type);
}

void fp8_transpose(Queue& queue, const Fp8Transpose& a) {
  if (a.R == 0 || a.C == 0) return;
  const uint8_t* const x = static_cast<const uint8_t*>(a.x);
  uint8_t* const y = static_cast<uint8_t*>(a.y);
  const int64_t padded = padded_rows(a.R);
  const dim3 grid = tiles_of(a.R, a.C);
  if (is_aligned(x, 16) && a.C % 16 == 0)
    launch(GPTBENCH_KERNEL(fp8_transpose_kernel<16>), grid, tile_threads, tile * tile_pitch,
           stream_of(queue), y, x, a.R, a.C, padded);
  else
    launch(GPTBENCH_KERNEL(fp8_transpose_kernel<1>), grid, tile_threads, tile * tile_pitch,
           stream_of(queue), y, x, a.R, a.C, padded);
}

void fp8_update_scales(Queue& queue, const Fp8UpdateScales& a) {
  if (a.count == 0) return;
  constexpr int threads = tensors_a_block * slices;
  const dim3 grid{static_cast<unsigned>(ceil_div(a.count, tensors_a_block)), 1, 1};
  launch(GPTBENCH_KERNEL(fp8_update_scales_kernel), grid, threads, threads * sizeof(float),
         stream_of(queue), a);
}

}  // namespace gptbench::cuda

namespace gptbench {
GPTBENCH_CUDA_KERNEL(fp8_quantize, Fp8Quantize);
}  // namespace gptbench
