#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/kernels_ref.h"
#include "device/simd_math.h"

namespace gptbench::host {

template <class A>
void embedding_forward(Queue& queue, const EmbeddingForward& a) {
  if (a.type_table != nullptr) {
    ref::embedding_forward<A, float>(queue, a);
    return;
  }
  A* const y = static_cast<A*>(a.y);
  const A* const token_table = static_cast<const A*>(a.token_table);
  const A* const position_table = static_cast<const A*>(a.position_table);
  const int32_t* const tokens = a.tokens;
  const int64_t T = a.T_local, C = a.C, first_token = a.first_token, V_tp = a.V_tp;
  const Positions positions = a.positions;
  parallel("gptbench::embedding_forward", a.R, [=](int64_t r) {
    const int64_t row = tokens[r] - first_token;
    const bool mine = row >= 0 && row < V_tp;
    A* const y_row = y + r * C;
    const A* const token_row = mine ? token_table + row * C : nullptr;
    const A* const position_row =
        position_table != nullptr ? position_table + position_of(positions, r % T) * C : nullptr;
    if (token_row != nullptr && position_row != nullptr) {
#pragma omp simd
      for (int64_t c = 0; c < C; ++c)
        simd::store(y_row[c], simd::load(token_row[c]) + simd::load(position_row[c]));
    } else if (token_row != nullptr || position_row != nullptr) {
      const A* const only = token_row != nullptr ? token_row : position_row;
      std::copy(only, only + C, y_row);
    } else {
#pragma omp simd
      for (int64_t c = 0; c < C; ++c) simd::store(y_row[c], 0.0f);
    }
  });
}

// A thread owns columns, so that each element is summed in the order of r.
template <class A>
void embedding_backward(Queue& queue, const EmbeddingBackward& a) {
  if (a.dtype_table != nullptr) {
    ref::embedding_backward<A, float>(queue, a);
    return;
  }
  float* const dtoken_table = static_cast<float*>(a.dtoken_table);
  float* const dposition_table = static_cast<float*>(a.dposition_table);
  const A* const dy = static_cast<const A*>(a.dy);
  const int32_t* const tokens = a.tokens;
  const int64_t R = a.R, T = a.T_local, C = a.C, first_token = a.first_token, V_tp = a.V_tp;
  const Positions positions = a.positions;
  const int64_t columns = round_up(ceil_div(C, num_threads()), 32);
  parallel("gptbench::embedding_backward", R == 0 ? 0 : ceil_div(C, columns), [=](int64_t block) {
    const int64_t c0 = block * columns;
    const int64_t width = std::min(columns, C - c0);
    for (int64_t r = 0; r < R; ++r) {
      const A* const dy_row = dy + r * C + c0;
      const int64_t row = tokens[r] - first_token;
      if (row >= 0 && row < V_tp) {
        float* const out = dtoken_table + row * C + c0;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] += simd::load(dy_row[c]);
      }
      if (dposition_table != nullptr) {
        float* const out = dposition_table + position_of(positions, r % T) * C + c0;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] += simd::load(dy_row[c]);
      }
    }
  });
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(embedding_forward, EmbeddingForward);
GPTBENCH_HOST_KERNEL(embedding_backward, EmbeddingBackward);
}  // namespace gptbench
