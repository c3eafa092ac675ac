// out[m][c] += sum over rows r of value m at (r, c), m < M: gradients of biases and of the weights
// of normalisations. Rows are summed in chunks, whose sums go to scratch memory and are then summed
// in order; without scratch memory there is one chunk. Values come from a function object,
//   f.template at<N>(float (&v)[M][N], r, c)      columns c .. c + N - 1 of row r, N = 8 or 1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/elementwise.cuh"
#include "device/arguments_types.h"

namespace gptbench::cuda {

constexpr int column_lanes = 32, row_lanes = 8;  // of a block

template <int M>
struct ColumnSums {
  float* out[M];  // an entry may be null

  // out[m], selected: an array with indices of run time lies in memory instead of registers.
  __device__ float* of(int m) const {
    float* selected = out[0];
    GPTBENCH_UNROLL
    for (int k = 1; k < M; ++k) selected = k == m ? out[k] : selected;
    return selected;
  }
};

// Row chunk y of the block; sums are added to `out`, or assigned to partial[y][m][c] where that is
// given.
template <int N, int M, class F>
__global__ void column_sum_kernel(F f, ColumnSums<M> out, float* partial, int64_t R, int64_t C,
                                  int64_t chunk) {
  GPTBENCH_DYNAMIC_SHARED(float, sums);  // [M][row_lanes][column_lanes N]
  constexpr int width = column_lanes * N;
  const int lane = static_cast<int>(threadIdx.x) % column_lanes;
  const int row_lane = static_cast<int>(threadIdx.x) / column_lanes;
  const int64_t c0 = static_cast<int64_t>(blockIdx.x) * width;
  const int64_t c = c0 + lane * N;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * chunk;
  const int64_t end = begin + chunk < R ? begin + chunk : R;
  float acc[M][N] = {};
  if (c < C)
    for (int64_t r = begin + row_lane; r < end; r += row_lanes) {
      float v[M][N];
      f.template at<N>(v, r, c);
      GPTBENCH_UNROLL
      for (int m = 0; m < M; ++m) {
        GPTBENCH_UNROLL
        for (int j = 0; j < N; ++j) acc[m][j] += v[m][j];
      }
    }
  GPTBENCH_UNROLL
  for (int m = 0; m < M; ++m) {
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) sums[(m * row_lanes + row_lane) * width + lane * N + j] = acc[m][j];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < M * width; i += column_lanes * row_lanes) {
    const int m = i / width, column = i % width;
    if (c0 + column >= C) continue;
    float sum = 0.0f;
    for (int row = 0; row < row_lanes; ++row) sum += sums[(m * row_lanes + row) * width + column];
    if (partial != nullptr)
      partial[(static_cast<int64_t>(blockIdx.y) * M + m) * C + c0 + column] = sum;
    else if (float* const to = out.of(m); to != nullptr)
      to[c0 + column] += sum;
  }
}

// The sums of chunks, partial[chunks][M][C], added up in order: 32 columns of one m per block,
// whose 32 warps take turns with the chunks.
template <int M>
__global__ void __launch_bounds__(1024)
    sum_partials_kernel(ColumnSums<M> out, const float* partial, int64_t chunks, int64_t C) {
  GPTBENCH_DYNAMIC_SHARED(float, sums);  // [warps][column_lanes]
  constexpr int warps = 1024 / column_lanes;
  const int lane = static_cast<int>(threadIdx.x) % column_lanes;
  const int warp = static_cast<int>(threadIdx.x) / column_lanes;
  const int m = static_cast<int>(blockIdx.y);
  const int64_t c = static_cast<int64_t>(blockIdx.x) * column_lanes + lane;
  float sum = 0.0f;
  for (int64_t r = warp; r < chunks && c < C; r += warps) sum += partial[(r * M + m) * C + c];
  sums[threadIdx.x] = sum;
  __syncthreads();
  float* const to = out.of(m);
  if (warp != 0 || c >= C || to == nullptr) return;
  for (int other = 1; other < warps; ++other) sum += sums[other * column_lanes + lane];
  to[c] += sum;
}

template <int M, class F>
void launch_column_sum(Queue& queue, const F& f, const ColumnSums<M>& out, float* partial,
                       int64_t R, int64_t C, int64_t chunks, bool aligned) {
  const int N = aligned ? vector_width : 1;
  const int64_t chunk = ceil_div(R, chunks);
  const dim3 grid{static_cast<unsigned>(ceil_div(C, column_lanes * N)),
                  static_cast<unsigned>(chunks), 1};
  constexpr int threads = column_lanes * row_lanes;
  const size_t shared = sizeof(float) * M * threads * static_cast<size_t>(N);
  if (aligned)
    launch(GPTBENCH_KERNEL(column_sum_kernel<vector_width, M, F>), grid, threads, shared,
           stream_of(queue), f, out, partial, R, C, chunk);
  else
    launch(GPTBENCH_KERNEL(column_sum_kernel<1, M, F>), grid, threads, shared, stream_of(queue), f,
           out, partial, R, C, chunk);
}

// partial[chunks][M][C] to out.
template <int M>
void sum_partials(Queue& queue, const ColumnSums<M>& out, const float* partial, int64_t chunks,
                  int64_t C) {
  const dim3 grid{static_cast<unsigned>(ceil_div(C, column_lanes)), M, 1};
  launch(GPTBENCH_KERNEL(sum_partials_kernel<M>), grid, 1024, 1024 * sizeof(float),
         stream_of(queue), out, partial, chunks, C);
}

// Chunks whose sums fit into the scratch memory, at most `wanted`; 1 where there is none. It does
// not depend on the device, so that neither do the bits of the sums.
inline int64_t chunks_that_fit(const Workspace& workspace, int64_t wanted, int64_t M, int64_t C) {
  const int64_t fit = workspace.bytes / (static_cast<int64_t>(sizeof(float)) * M * C);
  return std::max<int64_t>(1, std::min({wanted, fit, int64_t{65535}}));
}

template <int M, class F>
void column_sum(Queue& queue, const F& f, const ColumnSums<M>& out, int64_t R, int64_t C,
                const Workspace& workspace, bool aligned) {
  if (R == 0 || C == 0) return;
  const int64_t chunks = chunks_that_fit(workspace, std::min<int64_t>(256, ceil_div(R, 64)), M, C);
  if (chunks == 1) {
    launch_column_sum<M>(queue, f, out, nullptr, R, C, 1, aligned);
    return;
  }
  float* const partial = static_cast<float*>(workspace.data);
  launch_column_sum<M>(queue, f, out, partial, R, C, chunks, aligned);
  sum_partials<M>(queue, out, partial, chunks, C);
}

}  // namespace gptbench::cuda
