#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_map.h"
#include "device/host/simd_math.h"

namespace gptbench::host {

template <class A>
void embedding_forward(Queue&, const EmbeddingForward& a) {
  A* const y = static_cast<A*>(a.y);
  const A* const token_table = static_cast<const A*>(a.token_table);
  const A* const position_table = static_cast<const A*>(a.position_table);
  const A* const type_table = static_cast<const A*>(a.type_table);
  const int32_t* const tokens = a.tokens;
  const int32_t* const types = a.types;
  const int64_t R = a.R, T = a.T_local, C = a.C, first_token = a.first_token, V_tp = a.V_tp;
  const Positions positions = a.positions;
  parallel("gptbench::embedding_forward", a.R, [=](int64_t r) {
    // The rows that add up to this one.
    const A* row[3] = {};
    int count = 0;
    const int64_t token = tokens[r] - first_token;
    if (token >= 0 && token < V_tp) row[count++] = token_table + token * C;
    if (position_table != nullptr)
      row[count++] = position_table + position_of(positions, r % T) * C;
    if (type_table != nullptr) row[count++] = type_table + types[r] * C;
    // Prefetched, since it may be anywhere in the table.
    const int64_t next = r + 1 < R ? tokens[r + 1] - first_token : 0;
    const A* const next_row = token_table + (next >= 0 && next < V_tp ? next : 0) * C;
    A* const y_row = y + r * C;
    simd::for_steps<A>(
        C, [=](int64_t c, int64_t some) __attribute__((always_inline)) {
          for (int64_t line = 0; line < some; line += 64 / static_cast<int64_t>(sizeof(A)))
            __builtin_prefetch(next_row + c + line);
          simd::prefetch_lines<1>(y_row + c, some * static_cast<int64_t>(sizeof(A)));
          if (count > 1)
            simd::prefetch_lines<0>(row[1] + c, some * static_cast<int64_t>(sizeof(A)));
          if (count == 3) {
            simd::map<simd::Ties::to_even, simd::Fetch::none>(
                y_row + c, some, [](float u, float v, float w) { return u + v + w; }, row[0] + c,
                row[1] + c, row[2] + c);
          } else if (count == 2) {
            simd::map<simd::Ties::to_even, simd::Fetch::none>(
                y_row + c, some, [](float u, float v) { return u + v; }, row[0] + c, row[1] + c);
          } else if (count == 1) {
            std::copy(row[0] + c, row[0] + c + some, y_row + c);
          } else {
            std::fill(y_row + c, y_row + c + some, A(0.0f));
          }
        });
  });
}

// A thread owns columns, so that each element is summed in the order of r.
template <class A>
void embedding_backward(Queue&, const EmbeddingBackward& a) {
  float* const dtoken_table = static_cast<float*>(a.dtoken_table);
  float* const dposition_table = static_cast<float*>(a.dposition_table);
  float* const dtype_table = static_cast<float*>(a.dtype_table);
  const A* const dy = static_cast<const A*>(a.dy);
  const int32_t* const tokens = a.tokens;
  const int32_t* const types = a.types;
  const int64_t R = a.R, T = a.T_local, C = a.C, first_token = a.first_token, V_tp = a.V_tp;
  const Positions positions = a.positions;
  const int64_t columns = round_up(ceil_div(C, num_threads()), 32);
  parallel("gptbench::embedding_backward", R == 0 ? 0 : ceil_div(C, columns), [=](int64_t block) {
    const int64_t c0 = block * columns;
    const int64_t width = std::min(columns, C - c0);
    const auto add = [=](float* row, const A* dy_row) {
      float* const out = row + c0;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) out[c] += simd::load(dy_row[c]);
    };
    for (int64_t r = 0; r < R; ++r) {
      const A* const dy_row = dy + r * C + c0;
      const int64_t token = tokens[r] - first_token;
      if (token >= 0 && token < V_tp) add(dtoken_table + token * C, dy_row);
      if (dposition_table != nullptr)
        add(dposition_table + position_of(positions, r % T) * C, dy_row);
      if (dtype_table != nullptr) add(dtype_table + types[r] * C, dy_row);
    }
  });
}

GPTBENCH_EMBEDDING_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
