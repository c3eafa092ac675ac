// fp8 copies in the passes that make what they copy, and of arrays. A source F makes, element by
// element, `parts` arrays [R, C] that stand side by side in rows of parts C:
//   f.template values<N>(v, r, c)    v[m] = columns c .. c + N - 1 of row r of part m, rounded to
//   the
//                                    type of activations; stores them where they are wanted so
// N is 8 where every array allows 16-byte accesses, else 1. The copies have a byte an element each.
#pragma once

#include "base/error.h"
#include "base/fp8.h"
#include "cuda/kernels/column_sum.cuh"
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/reduce.cuh"
#include "device/arguments_types.h"

#if !defined(GPTBENCH_EMULATION)
#include <cuda_fp8.h>
#endif

namespace gptbench::cuda {

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

// The largest of the threads of a block goes to amax, of which all threads call this. A maximum is
// the same in any order; what is not above the one in hand, however old, need not be compared.
__device__ inline void note_amax(float* amax, int largest) {
  GPTBENCH_UNROLL
  for (int bits = 16; bits > 0; bits /= 2) {
    const int other = __shfl_xor_sync(full_warp, largest, bits);
    largest = other > largest ? other : largest;
  }
  int* const to = reinterpret_cast<int*>(amax);
  if (threadIdx.x % 32 == 0 && largest > *static_cast<volatile int*>(to)) atomicMax(to, largest);
}

// The codes of N elements to y, whose largest magnitude takes part in `largest`.
template <int N>
__device__ inline void put_codes(uint8_t* y, const float (&x)[N], float scale, DType type,
                                 int& largest) {
  GPTBENCH_UNROLL
  for (int i = 0; i < N; ++i) largest = larger_magnitude(largest, x[i]);
  if constexpr (N == vector_width) {
    *GPTBENCH_VECTOR(uint2, y) = encode(x, scale, type);
  } else {
    const float one[vector_width] = {x[0]};
    y[0] = static_cast<uint8_t>(encode(one, scale, type).x);
  }
}

template <int N, class F>
__global__ void fp8_rows_kernel(F f, Fp8Copy copy, int64_t R, int64_t C) {
  uint8_t* const y = static_cast<uint8_t*>(copy.y);
  const float scale = copy.scale[0];
  int largest = 0;
  for (int64_t r = blockIdx.x; r < R; r += gridDim.x)
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * N; c < C;
         c += static_cast<int64_t>(blockDim.x) * N) {
      float v[F::parts][N];
      f.template values<N>(v, r, c);
      GPTBENCH_UNROLL
      for (int m = 0; m < F::parts; ++m)
        put_codes<N>(y + (r * F::parts + m) * C + c, v[m], scale, copy.type, largest);
    }
  note_amax(copy.amax, largest);
}

// Tiles of 64 rows by 64 columns are transposed in shared memory, which holds them column by
// column.
constexpr int fp8_tile = 64;
constexpr int fp8_tile_threads = 256;
constexpr int fp8_tile_words = fp8_tile * fp8_tile / 4;

// Place of rows 4 w .. 4 w + 3 of a column: 16 words per column, permuted within 16 bytes, among
// these and between neighbouring columns, so that the lanes that write at the same time (columns
// 8 i + j, i < 8, j < 4, of one w) hit all 32 banks.
__device__ inline int fp8_tile_word(int column, int w) {
  return (column ^ (column >> 5)) * 16 + (((w >> 2) ^ (column >> 3)) & 3) * 4 + ((w ^ column) & 3);
}

// Bytes of a (0 .. 3) and b (4 .. 7), one per digit of `selector`, the lowest first.
__device__ inline uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t selector) {
#if defined(GPTBENCH_EMULATION)
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i)
    out |= static_cast<uint32_t>(both >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return out;
#else
  return __byte_perm(a, b, selector);
#endif
}

// Four lanes, `step` apart from one another, hold four bytes each of rows 0 .. 3; the return value
// of lane q is the column of their bytes q.
__device__ inline uint32_t transposed_bytes(uint32_t row, int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t next = __shfl_xor_sync(full_warp, row, step);
  const uint32_t pairs =
      (lane & step) == 0 ? bytes_of(row, next, 0x6240) : bytes_of(row, next, 0x3715);
  const uint32_t other = __shfl_xor_sync(full_warp, pairs, 2 * step);
  return (lane & 2 * step) == 0 ? bytes_of(pairs, other, 0x5410) : bytes_of(pairs, other, 0x3276);
}

// Columns of a tile in shared memory to rows of y, 16 bytes at a time.
__device__ inline void store_columns(uint8_t* y, const uint32_t* tile, int64_t r0, int64_t c0,
                                     int64_t C, int64_t padded) {
  constexpr int pieces = fp8_tile / 16;
  for (int item = static_cast<int>(threadIdx.x); item < fp8_tile * pieces;
       item += fp8_tile_threads) {
    const int column = item / pieces, row = item % pieces * 16;
    if (c0 + column >= C || r0 + row >= padded) continue;
    const uint4 v = *GPTBENCH_VECTOR(const uint4, tile + (fp8_tile_word(column, row / 4) & ~3));
    const bool odd = (column & 1) != 0, upper = (column & 2) != 0;
    const uint4 pairs = odd ? uint4{v.y, v.x, v.w, v.z} : v;
    *GPTBENCH_VECTOR(uint4, y + (c0 + column) * padded + r0 + row) =
        upper ? uint4{pairs.z, pairs.w, pairs.x, pairs.y} : pairs;
  }
}

constexpr int fp8_tile_warps = fp8_tile_threads / 32;

// Shared memory of a tile: codes, then sums over the rows of each warp.
template <int parts>
constexpr int fp8_tile_bytes() {
  return parts * 4 * (fp8_tile_words + fp8_tile_warps * fp8_tile);
}

// v[m][j]: sums of this thread over its rows, column 8 (lane % 8) + j of part m. Those of its warp
// go to shared[m][column][warp].
template <int parts>
__device__ inline void share_column_sums(float (&v)[parts][vector_width], float* shared) {
  constexpr int vectors = fp8_tile / vector_width;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  GPTBENCH_UNROLL
  for (int m = 0; m < parts; ++m) {
    GPTBENCH_UNROLL
    for (int j = 0; j < vector_width; ++j) {
      GPTBENCH_UNROLL
      for (int bits = vectors; bits < 32; bits *= 2)
        v[m][j] += __shfl_xor_sync(full_warp, v[m][j], bits);
      if (lane < vectors)
        shared[(m * fp8_tile + lane * vector_width + j) * fp8_tile_warps + warp] = v[m][j];
    }
  }
}

// copy.y and copy.y_transposed may be null. Rows from tile `first` on. partial, where not null: the
// sums over the rows of a tile, [tile from first on, parts C].
template <int N, class F>
__global__ void fp8_tiles_kernel(F f, Fp8Copy copy, float* partial, int64_t first, int64_t R,
                                 int64_t C, int64_t padded) {
  GPTBENCH_DYNAMIC_SHARED(uint32_t, tiles);
  float* const tile_sums = reinterpret_cast<float*>(tiles + F::parts * fp8_tile_words);
  uint8_t* const y = static_cast<uint8_t*>(copy.y);
  const int64_t r0 = (first + static_cast<int64_t>(blockIdx.x)) * fp8_tile;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * fp8_tile;
  const float scale = copy.scale[0];
  constexpr int vectors = fp8_tile / vector_width;  // of a row
  int largest = 0;
  float sums[F::parts][vector_width] = {};
  for (int item = static_cast<int>(threadIdx.x); item < fp8_tile * vectors;
       item += fp8_tile_threads) {
    const int row = item / vectors, column = item % vectors * vector_width;
    const int64_t r = r0 + row, c = c0 + column;
    float v[F::parts][vector_width] = {};
    if (r < R) {
      if constexpr (N == vector_width) {
        if (c < C) f.template values<N>(v, r, c);
      } else {
        for (int j = 0; j < vector_width && c + j < C; ++j) {
          float one[F::parts][1];
          f.template values<1>(one, r, c + j);
          for (int m = 0; m < F::parts; ++m) v[m][j] = one[m][0];
        }
      }
    }
    GPTBENCH_UNROLL
    for (int m = 0; m < F::parts; ++m) {
      GPTBENCH_UNROLL
      for (int j = 0; j < vector_width; ++j) {
        largest = larger_magnitude(largest, v[m][j]);
        sums[m][j] += v[m][j];
      }
      const uint2 bytes = encode(v[m], scale, copy.type);
      const auto byte = [&](int j) {
        return static_cast<uint8_t>((j < 4 ? bytes.x : bytes.y) >> (j % 4 * 8));
      };
      if (y != nullptr && r < R) {
        uint8_t* const to = y + (r * F::parts + m) * C + c;
        if constexpr (N == vector_width) {
          if (c < C) *GPTBENCH_VECTOR(uint2, to) = bytes;
        } else {
          for (int j = 0; j < vector_width && c + j < C; ++j) to[j] = byte(j);
        }
      }
      // Rows behind the last are zero, whose code is 0. Lanes 8 apart have the rows of one word.
      uint32_t* const tile = tiles + m * fp8_tile_words;
      tile[fp8_tile_word(column + row % 4, row / 4)] = transposed_bytes(bytes.x, vectors);
      tile[fp8_tile_word(column + 4 + row % 4, row / 4)] = transposed_bytes(bytes.y, vectors);
    }
  }
  if (partial != nullptr) share_column_sums<F::parts>(sums, tile_sums);
  __syncthreads();
  if (partial != nullptr)
    for (int i = static_cast<int>(threadIdx.x); i < F::parts * fp8_tile; i += fp8_tile_threads) {
      const int m = i / fp8_tile, column = i % fp8_tile;
      if (c0 + column >= C) continue;
      float sum = 0.0f;
      for (int warp = 0; warp < fp8_tile_warps; ++warp) sum += tile_sums[i * fp8_tile_warps + warp];
      partial[(static_cast<int64_t>(blockIdx.x) * F::parts + m) * C + c0 + column] = sum;
    }
  if (copy.y_transposed != nullptr) {
    GPTBENCH_UNROLL
    for (int m = 0; m < F::parts; ++m)
      store_columns(static_cast<uint8_t*>(copy.y_transposed) + m * C * padded,
                    tiles + m * fp8_tile_words, r0, c0, C, padded);
  }
  note_amax(copy.amax, largest);
}

// Grid with one block per tile. Rows, of which a batch may have millions, lie along x, since y ends
// at 65535.
inline dim3 fp8_tiles_of(int64_t row_tiles, int64_t C) {
  return {static_cast<unsigned>(row_tiles), static_cast<unsigned>(ceil_div(C, fp8_tile)), 1};
}

// The copies that are wanted of what f makes, [R, C] for each part. aligned: of f's arrays,
// rows_are_aligned.
template <class F>
void make_copied(Queue& queue, const F& f, const Fp8Copy& copy, int64_t R, int64_t C,
                 bool aligned) {
  if (R == 0 || C == 0) return;
  aligned =
      aligned && C % vector_width == 0 && reinterpret_cast<uintptr_t>(copy.y) % vector_width == 0;
  if (copy.y_transposed == nullptr && copy.sums == nullptr) {
    const int64_t vectors = ceil_div(C, aligned ? vector_width : 1);
    const int threads = static_cast<int>(std::min<int64_t>(256, round_up(vectors, 32)));
    const dim3 grid{blocks_for(R, 32), 1, 1};
    if (aligned)
      launch(GPTBENCH_KERNEL(fp8_rows_kernel<vector_width, F>), grid, threads, 0, stream_of(queue),
             f, copy, R, C);
    else
      launch(GPTBENCH_KERNEL(fp8_rows_kernel<1, F>), grid, threads, 0, stream_of(queue), f, copy, R,
             C);
    return;
  }
  // Sums over tiles go to scratch memory and are then added in order, as many as fit at a time.
  const int64_t tiles = ceil_div(R, fp8_tile), columns = F::parts * C;
  int64_t at_once = tiles;
  float* partial = nullptr;
  if (copy.sums != nullptr) {
    const int64_t fit = copy.workspace.bytes / (columns * static_cast<int64_t>(sizeof(float)));
    GPTBENCH_CHECK(fit > 0, "too little scratch memory for sums of columns");
    at_once = std::min(tiles, fit);
    partial = static_cast<float*>(copy.workspace.data);
  }
  for (int64_t first = 0; first < tiles; first += at_once) {
    const int64_t here = std::min(at_once, tiles - first);
    const dim3 grid = fp8_tiles_of(here, C);
    constexpr size_t shared = fp8_tile_bytes<F::parts>();
    if (aligned)
      launch(GPTBENCH_KERNEL(fp8_tiles_kernel<vector_width, F>), grid, fp8_tile_threads, shared,
             stream_of(queue), f, copy, partial, first, R, C, padded_rows(R));
    else
      launch(GPTBENCH_KERNEL(fp8_tiles_kernel<1, F>), grid, fp8_tile_threads, shared,
             stream_of(queue), f, copy, partial, first, R, C, padded_rows(R));
    if (partial != nullptr)
      sum_partials<1>(queue, {{static_cast<float*>(copy.sums)}}, partial, here, columns);
  }
}

}  // namespace gptbench::cuda
