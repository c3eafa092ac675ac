// Loops over elements, and over the elements of rows, as grids. What is done with an element is a
// function object F:
//   f.template at<N>(i)                              elements i .. i + N - 1
//   f.row(r), f.template at<N>(row, c)               columns c .. c + N - 1 of a row
// N is 8 where every array allows 16-byte accesses, else 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "base/units.h"
#include "cuda/kernels/number.cuh"
#include "device/arguments_types.h"

namespace gptbench::cuda {

constexpr int vector_width = 8;
constexpr int64_t vector_bytes = 16;

// An array that a loop touches: the address of its first element (or null), bytes per element.
struct Touched {
  const void* data;
  int64_t element_bytes;
};

// The smallest number of elements after which all arrays stand at multiples of 16 bytes, -1 where
// there is none below 8.
inline int64_t elements_to_alignment(std::initializer_list<Touched> arrays) {
  for (int64_t head = 0; head < vector_width; ++head) {
    bool aligned = true;
    for (const Touched& a : arrays)
      if (a.data != nullptr) {
        const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.data));
        if ((address + head * a.element_bytes) % vector_bytes != 0) aligned = false;
      }
    if (aligned) return head;
  }
  return -1;
}

// Threads that keep a device busy where a kernel only moves bytes.
inline unsigned blocks_for(int64_t wanted, int blocks_per_multiprocessor) {
  const int64_t most = static_cast<int64_t>(multiprocessors()) * blocks_per_multiprocessor;
  return static_cast<unsigned>(std::max<int64_t>(1, std::min(wanted, most)));
}

template <int N, class F>
__global__ void elementwise_kernel(F f, int64_t head, int64_t n) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t vectors = n > head ? (n - head) / N : 0;
  for (int64_t v = thread; v < vectors; v += stride) f.template at<N>(head + v * N);
  // Elements before and behind the vectors.
  for (int64_t i = thread; i < n - vectors * N; i += stride)
    f.template at<1>(i < head ? i : i + vectors * N);
}

// f over elements 0 .. n-1 of `arrays`.
template <class F>
void elementwise(Queue& queue, const F& f, int64_t n, std::initializer_list<Touched> arrays) {
  if (n == 0) return;
  constexpr int threads = 256;
  const int64_t head = elements_to_alignment(arrays);
  const int64_t width = head < 0 ? 1 : vector_width;
  const dim3 grid{blocks_for(ceil_div(n, threads * width), 8), 1, 1};
  if (head < 0)
    launch(GPTBENCH_KERNEL(elementwise_kernel<1, F>), grid, threads, 0, stream_of(queue), f,
           int64_t{0}, n);
  else
    launch(GPTBENCH_KERNEL(elementwise_kernel<vector_width, F>), grid, threads, 0, stream_of(queue),
           f, head, n);
}

// An array of rows that a loop touches: its first element (or null), bytes per element, elements
// from one row to the next (0: one row serves all).
struct TouchedRows {
  const void* data;
  int64_t element_bytes;
  int64_t row;
};

inline bool rows_are_aligned(int64_t C, std::initializer_list<TouchedRows> arrays) {
  if (C % vector_width != 0) return false;
  for (const TouchedRows& a : arrays)
    if (a.data != nullptr && (reinterpret_cast<uintptr_t>(a.data) % vector_bytes != 0 ||
                              a.row * a.element_bytes % vector_bytes != 0))
      return false;
  return true;
}

template <int N, class F>
__global__ void rows_kernel(F f, int64_t R, int64_t C) {
  for (int64_t r = blockIdx.x; r < R; r += gridDim.x) {
    const auto row = f.row(r);
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * N; c < C;
         c += static_cast<int64_t>(blockDim.x) * N)
      f.template at<N>(row, c);
  }
}

// f over columns 0 .. C-1 of rows 0 .. R-1 of `arrays`.
template <class F>
void over_rows(Queue& queue, const F& f, int64_t R, int64_t C,
               std::initializer_list<TouchedRows> arrays) {
  if (R == 0 || C == 0) return;
  const bool aligned = rows_are_aligned(C, arrays);
  const int64_t vectors = ceil_div(C, aligned ? vector_width : 1);
  const int threads = static_cast<int>(std::min<int64_t>(256, round_up(vectors, 32)));
  const dim3 grid{blocks_for(R, 32), 1, 1};
  if (aligned)
    launch(GPTBENCH_KERNEL(rows_kernel<vector_width, F>), grid, threads, 0, stream_of(queue), f, R,
           C);
  else
    launch(GPTBENCH_KERNEL(rows_kernel<1, F>), grid, threads, 0, stream_of(queue), f, R, C);
}

}  // namespace gptbench::cuda
