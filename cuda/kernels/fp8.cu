// fp8 copies of arrays with their largest magnitude, and the scales that follow from it. A
// conversion reads x once and writes one byte per element for each of the two copies.
#include "cuda/kernels/fp8.cuh"

#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

template <class A>
struct StoredElements {
  static constexpr int parts = 1;
  const A* x;
  int64_t C;

  template <int N>
  __device__ void values(float (&v)[parts][N], int64_t r, int64_t c) const {
    load<N>(v[0], x + r * C + c);
  }
};

// N bytes at a time, 16 or 1.
template <int N>
__global__ void fp8_transpose_kernel(uint8_t* y, const uint8_t* x, int64_t R, int64_t C,
                                     int64_t padded) {
  GPTBENCH_DYNAMIC_SHARED(uint32_t, tile);
  const int64_t r0 = static_cast<int64_t>(blockIdx.x) * fp8_tile;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * fp8_tile;
  constexpr int pieces = fp8_tile / N;
  for (int item = static_cast<int>(threadIdx.x); item < fp8_tile * pieces;
       item += fp8_tile_threads) {
    const int row = item / pieces, column = item % pieces * N;
    const int64_t r = r0 + row, c = c0 + column;
    const bool inside = r < R && c < C;
    if constexpr (N == 16) {
      uint4 v = {};
      if (inside) v = *GPTBENCH_VECTOR(const uint4, x + r * C + c);
      const uint32_t words[4] = {v.x, v.y, v.z, v.w};
      GPTBENCH_UNROLL
      for (int i = 0; i < 4; ++i)
        tile[fp8_tile_word(column + 4 * i + row % 4, row / 4)] = transposed_bytes(words[i], pieces);
    } else {
      uint8_t* const bytes = reinterpret_cast<uint8_t*>(tile + fp8_tile_word(column, row / 4));
      bytes[row % 4] = inside ? x[r * C + c] : static_cast<uint8_t>(0);
    }
  }
  __syncthreads();
  store_columns(y, tile, r0, c0, C, padded);
}

constexpr int tensors_per_block = 32, slices = 8;

// A warp's lanes are tensors, its warps slices of the history.
__global__ void fp8_update_scales_kernel(Fp8UpdateScales a) {
  GPTBENCH_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % tensors_per_block;
  const int slice = static_cast<int>(threadIdx.x) / tensors_per_block;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * tensors_per_block + lane;
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
  shared[slice * tensors_per_block + lane] = largest;
  __syncthreads();
  if (slice != 0 || i >= a.count) return;
  for (int other = 1; other < slices; ++other)
    largest = fmaxf(largest, shared[other * tensors_per_block + lane]);
  const DType type = i < a.e4m3 ? DType::fp8_e4m3 : DType::fp8_e5m2;
  const float scale = fp8_scale(largest, fp8_format(type), a.margin, a.scale[i]);
  a.scale[i] = scale;
  a.inverse[fp8_inverse_stride * i] = 1.0f / scale;
  a.amax[i] = 0.0f;
  a.position[i] = static_cast<int32_t>((position + 1) % a.length);
}

bool is_aligned(const void* p, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace

template <class A>
void fp8_quantize(Queue& queue, const Fp8Quantize& a) {
  make_copied(queue, StoredElements<A>{static_cast<const A*>(a.x), a.C}, copy_of(a), a.R, a.C,
              rows_are_aligned(a.C, {{a.x, sizeof(A), a.C}}));
}

template <class A>
void fp8_transpose(Queue& queue, const Fp8Transpose& a) {
  if (a.R == 0 || a.C == 0) return;
  const uint8_t* const x = static_cast<const uint8_t*>(a.x);
  uint8_t* const y = static_cast<uint8_t*>(a.y);
  const int64_t padded = padded_rows(a.R);
  const dim3 grid = fp8_tiles_of(ceil_div(a.R, fp8_tile), a.C);
  if (is_aligned(x, 16) && a.C % 16 == 0)
    launch(GPTBENCH_KERNEL(fp8_transpose_kernel<16>), grid, fp8_tile_threads, 4 * fp8_tile_words,
           stream_of(queue), y, x, a.R, a.C, padded);
  else
    launch(GPTBENCH_KERNEL(fp8_transpose_kernel<1>), grid, fp8_tile_threads, 4 * fp8_tile_words,
           stream_of(queue), y, x, a.R, a.C, padded);
}

template <class A>
void fp8_update_scales(Queue& queue, const Fp8UpdateScales& a) {
  if (a.count == 0) return;
  constexpr int threads = tensors_per_block * slices;
  const dim3 grid{static_cast<unsigned>(ceil_div(a.count, tensors_per_block)), 1, 1};
  launch(GPTBENCH_KERNEL(fp8_update_scales_kernel), grid, threads, threads * sizeof(float),
         stream_of(queue), a);
}

GPTBENCH_FP8_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
