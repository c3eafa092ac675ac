// Lengths of queries, and gradients of keys that nobody sees: bytes of the padding alone.
#include "cuda/attention_padding.h"
#include "cuda/kernels/elementwise.cuh"

namespace gptbench {
namespace cuda {
namespace {

struct LengthElements {
  int32_t* lengths;
  int32_t T;

  template <int N>
  __device__ void at(int64_t i) const {
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) lengths[i + j] = T;
  }
};

struct ZeroPaddedRows {
  bfloat16* first;  // any type of 2 bytes whose zero has no bit set
  bfloat16* second;
  const int32_t* lengths;
  int64_t T, row_elements;

  // Where row r lies, -1 where it is none of the padding.
  __device__ int64_t row(int64_t r) const {
    return r % T >= lengths[r / T] ? r * row_elements : -1;
  }
  template <int N>
  __device__ void at(int64_t row, int64_t c) const {
    if (row < 0) return;
    const float zero[N] = {};
    store<N>(first + row + c, zero);
    store<N>(second + row + c, zero);
  }
};

}  // namespace
}  // namespace cuda

void fill_lengths(Queue& queue, int32_t* lengths, int64_t B, int32_t T) {
  cuda::elementwise(queue, cuda::LengthElements{lengths, T}, B, {{lengths, sizeof(int32_t)}});
}

void zero_padded_rows(Queue& queue, const PaddedRows& r) {
  const cuda::ZeroPaddedRows f{static_cast<bfloat16*>(r.arrays[0]),
                               static_cast<bfloat16*>(r.arrays[1]), r.lengths, r.T, r.row};
  cuda::over_rows(queue, f, r.B * r.T, r.width,
                  {{r.arrays[0], sizeof(bfloat16), r.row}, {r.arrays[1], sizeof(bfloat16), r.row}});
}

}  // namespace gptbench
