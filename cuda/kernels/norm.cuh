// What LayerNorm and RMSNorm share. A row of C elements is held in registers by W warps, V vectors
// of 8 elements per thread; lane i of them holds vectors i, i + 32 W, ... Rows that do not fit, or
// are not aligned, take kernels of their own, which read them again for each sum.
#pragma once

#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {

constexpr int warps_of_row_kernels = 4;  // of a block whose rows are held by one warp each

template <int V, int W>
struct RowLayout {
  static constexpr int vectors = V, warps = W;
  static constexpr int threads = 32 * W;                          // that share a row
  static constexpr int rows = W == 1 ? warps_of_row_kernels : 1;  // of a block at a time
};

// Calls f(RowLayout<V, W>{}) for the narrowest layout that holds rows of C elements, or g() where
// none does.
template <class F, class G>
void with_row_layout(int64_t C, bool aligned, const F& f, const G& g) {
  const int64_t vectors = C / vector_width;
  if (!aligned || vectors > 16 * 32 * 4)
    g();
  else if (vectors <= 32)
    f(RowLayout<1, 1>{});
  else if (vectors <= 64)
    f(RowLayout<2, 1>{});
  else if (vectors <= 96)
    f(RowLayout<3, 1>{});
  else if (vectors <= 128)
    f(RowLayout<4, 1>{});
  else if (vectors <= 256)
    f(RowLayout<2, 4>{});
  else if (vectors <= 512)
    f(RowLayout<4, 4>{});
  else if (vectors <= 1024)
    f(RowLayout<2, 16>{});
  else
    f(RowLayout<4, 16>{});
}

// Threads of a block whose threads loop over the columns of one row.
constexpr int wide_threads = 256;
constexpr int wide_warps = wide_threads / 32;

}  // namespace gptbench::cuda
