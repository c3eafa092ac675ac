// Code shared by LayerNorm and RMSNorm. A row of C elements is held in registers by W warps, V
// vectors of 8 elements per thread; lane i of them holds vectors i, i + 32 W, ... Rows that do not
// fit, or are not aligned, take kernels of their own, which read them again for each sum.
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

// A vector of a row as it lies in memory, with half of the registers of its values in 16-bit types.
template <class A>
struct Stored {
  static constexpr int words = vector_width * static_cast<int>(sizeof(A)) / vector_bytes;
  uint4 word[words];
};

// Read for the last time before it is overwritten: what the GEMMs read next stays in the cache.
template <class A>
__device__ inline Stored<A> load_last(const A* p) {
  Stored<A> out;
  GPTBENCH_UNROLL
  for (int w = 0; w < Stored<A>::words; ++w) {
    const uint4* const from = GPTBENCH_VECTOR(const uint4, p) + w;
#if defined(GPTBENCH_EMULATION)
    out.word[w] = *from;
#else
    out.word[w] = __ldcs(from);
#endif
  }
  return out;
}

// Read by every row, and not written by the kernel.
template <class A>
__device__ inline Stored<A> load_shared_by_rows(const A* __restrict__ p) {
  Stored<A> out;
  GPTBENCH_UNROLL
  for (int w = 0; w < Stored<A>::words; ++w) out.word[w] = GPTBENCH_VECTOR(const uint4, p)[w];
  return out;
}

template <class A>
__device__ inline void values_of(float (&x)[vector_width], const Stored<A>& stored) {
  GPTBENCH_UNROLL
  for (int w = 0; w < Stored<A>::words; ++w) {
    const uint32_t words[4] = {stored.word[w].x, stored.word[w].y, stored.word[w].z,
                               stored.word[w].w};
    GPTBENCH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(A) == sizeof(float)) {
        x[4 * w + i] = __uint_as_float(words[i]);
      } else {
        const float2 pair = unpack<A>(words[i]);
        x[2 * i] = pair.x;
        x[2 * i + 1] = pair.y;
      }
    }
  }
}

// The compiler forms values anew from what is stored instead of keeping them in registers.
template <class A>
__device__ inline void forget_values(Stored<A>& stored) {
#if defined(GPTBENCH_EMULATION)
  static_cast<void>(stored);
#else
  GPTBENCH_UNROLL
  for (int w = 0; w < Stored<A>::words; ++w)
    asm volatile(""
                 : "+r"(stored.word[w].x), "+r"(stored.word[w].y), "+r"(stored.word[w].z),
                   "+r"(stored.word[w].w));
#endif
}

// Threads of a block whose threads loop over the columns of one row.
constexpr int wide_threads = 256;
constexpr int wide_warps = wide_threads / 32;

}  // namespace gptbench::cuda
