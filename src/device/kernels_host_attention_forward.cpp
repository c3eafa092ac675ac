#include <cmath>
#include <limits>

#include "device/kernels_host_attention.h"

namespace gptbench::host {
namespace {

// One tile of scores S (rows `width` apart) becomes exponentials in P (A; the same memory as S for
// float), hidden columns zero; running maximum, sum and accumulator of the rows follow (online
// softmax, Milakov and Gimelshein, arXiv:1805.02867).
struct SoftmaxTile {
  int64_t i0, rows;   // queries
  int64_t j0, width;  // keys
  int64_t D;
  float scale;
  bool causal;
};

template <class A>
void softmax_tile(const SoftmaxTile& t, const float* scores, A* probabilities, float* row_max,
                  float* row_sum, float* accumulator) {
  // Copies, since stores through float pointers might change what `t` holds.
  const int64_t width = t.width, D = t.D;
  const float scale = t.scale;
  for (int64_t i = 0; i < t.rows; ++i) {
    const float* const s = scores + i * width;
    A* const p = probabilities + i * width;
    const int64_t visible = t.causal ? std::min(width, t.i0 + i + 1 - t.j0) : width;
    const float largest = simd::max_of(visible, [=](int64_t j) { return s[j]; });
    const float before = row_max[i];
    const float m = simd::larger(before, scale * largest);
    // Whole vectors beyond the last visible key: short of a branch, the rest of a row costs as much
    // as all of it.
    const int64_t padded = std::min(width, round_up(visible, 64));
    const float sum = simd::sum_of(padded, [=](int64_t j) {
      const float e = j < visible ? simd::exp(scale * s[j] - m) : 0.0f;
      simd::store(p[j], e);
      return e;
    });
#pragma omp simd
    for (int64_t j = padded; j < width; ++j) simd::store(p[j], 0.0f);
    const float shrink = simd::exp(before - m);
    row_sum[i] = row_sum[i] * shrink + sum;
    row_max[i] = m;
    if (t.j0 > 0 && m != before) {
      float* const o = accumulator + i * D;
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) o[d] *= shrink;
    }
  }
}

// Drops probabilities after their sum was taken: element (i, j) has index first + i T + j.
template <class A>
void drop_tile(const DropoutFactors& factors, int64_t first, int64_t T, int64_t rows, int64_t width,
               A* probabilities) {
  float factor[dropout_chunk];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j0 = 0; j0 < width; j0 += dropout_chunk) {
      const int64_t count = std::min(dropout_chunk, width - j0);
      factors.fill(factor, first + i * T + j0, count);
      A* const p = probabilities + i * width + j0;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) simd::store(p[j], simd::load(p[j]) * factor[j]);
    }
}

template <class A>
void forward_head(const AttentionForward& a, int64_t item, Scratch scratch) {
  const AttentionShape& g = a.shape;
  const int64_t b = item / g.H, h = item % g.H, h_kv = h / (g.H / g.H_kv);
  const int64_t T = g.T_q, D = g.D;
  const Workspace gemm_workspace = scratch.take_gemm_workspace();
  A* const k = scratch.take<A>(T * D);
  A* const v = scratch.take<A>(T * D);
  A* const q = scratch.take<A>(attention_tile_rows * D);
  float* const scores = scratch.take<float>(attention_tile_rows * attention_tile_columns);
  A* const probabilities = sizeof(A) == sizeof(float)
                               ? reinterpret_cast<A*>(scores)
                               : scratch.take<A>(attention_tile_rows * attention_tile_columns);
  float* const accumulator = scratch.take<float>(attention_tile_rows * D);
  float* const row_max = scratch.take<float>(attention_tile_rows);
  float* const row_sum = scratch.take<float>(attention_tile_rows);
  pack_rows(k, static_cast<const A*>(a.k) + b * g.kv_step + h_kv * D, g.kv_row, T, D);
  pack_rows(v, static_cast<const A*>(a.v) + b * g.kv_step + h_kv * D, g.kv_row, T, D);
  float* const lse = static_cast<float*>(a.lse) + (b * g.H + h) * g.lse_step;
  const int64_t head = (g.first_sequence + b) * g.H_global + g.first_head + h;
  const DropoutFactors factors(g.dropout);

  for (int64_t i0 = 0; i0 < T; i0 += attention_tile_rows) {
    const int64_t rows = std::min(attention_tile_rows, T - i0);
    const int64_t keys = g.causal ? i0 + rows : T;
    pack_rows(q, static_cast<const A*>(a.q) + b * g.q_step + i0 * g.q_row + h * D, g.q_row, rows,
              D);
    std::fill(row_max, row_max + rows, -std::numeric_limits<float>::infinity());
    std::fill(row_sum, row_sum + rows, 0.0f);
    for (int64_t j0 = 0; j0 < keys; j0 += attention_tile_columns) {
      const int64_t width = std::min(attention_tile_columns, keys - j0);
      tile_gemm(scores, rows, width, D, q, false, k + j0 * D, true, false, gemm_workspace);
      softmax_tile({i0, rows, j0, width, D, static_cast<float>(g.scale), g.causal}, scores,
                   probabilities, row_max, row_sum, accumulator);
      if (g.dropout.rate > 0.0)
        drop_tile(factors, (head * T + i0) * T + j0, T, rows, width, probabilities);
      tile_gemm(accumulator, rows, D, width, probabilities, false, v + j0 * D, false, j0 > 0,
                gemm_workspace);
    }
    for (int64_t i = 0; i < rows; ++i) {
      A* const out = static_cast<A*>(a.out) + b * g.out_step + (i0 + i) * g.out_row + h * D;
      const float* const o = accumulator + i * D;
      const float inverse = 1.0f / row_sum[i];
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) simd::store(out[d], o[d] * inverse);
      lse[i0 + i] = row_max[i] + std::log(row_sum[i]);
    }
  }
}

}  // namespace

template <class A>
void attention_forward(Queue& queue, const AttentionForward& a) {
  if (a.shape.B == 0 || a.shape.T_q == 0) return;
  if (!is_plain(a.shape)) {
    ref::attention_forward<A, float>(queue, a);
    return;
  }
  parallel_heads("gptbench::attention_forward", a.shape.B * a.shape.H, a.shape.T_q, a.shape.D,
                 a.workspace,
                 [=](int64_t item, const Scratch& scratch) { forward_head<A>(a, item, scratch); });
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(attention_forward, AttentionForward);
}  // namespace gptbench
