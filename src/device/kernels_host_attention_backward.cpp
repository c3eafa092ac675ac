#include "device/kernels_host_attention.h"

namespace gptbench::host {
namespace {

// With P the probabilities, Z dropout factors and delta_i = dout_i . out_i:
//   dv_j = sum_i P_ij Z_ij dout_i,   dS_ij = P_ij (Z_ij dout_i . v_j - delta_i),
//   dq_i = scale sum_j dS_ij k_j,    dk_j = scale sum_i dS_ij q_i.
// Tiles are held transposed, keys by queries: what belongs to a query (lse, delta) is then a vector
// along the row, and four of the five products read their factors as they lie in memory.
template <class A>
struct Tile {
  const float* scores;   // [rows, width]: k_j . q_i
  const float* dprobs;   // [rows, width]: v_j . dout_i
  const float* factors;  // [rows, width]: Z, or null
  A* probabilities;      // P Z; may be the memory of scores
  A* dscores;            // scale dS; may be the memory of dprobs
  int64_t j0, rows;      // keys
  int64_t i0, width;     // queries
  const float* lse;      // of query i0 and on
  const float* delta;
  float scale;
  bool causal;
};

template <class A>
void softmax_backward_tile(const Tile<A>& t) {
  // Copies, since stores through float pointers might change what `t` holds.
  const int64_t width = t.width;
  const float scale = t.scale;
  const float* const lse = t.lse;
  const float* const delta = t.delta;
  for (int64_t j = 0; j < t.rows; ++j) {
    const float* const s = t.scores + j * width;
    const float* const dp = t.dprobs + j * width;
    A* const p = t.probabilities + j * width;
    A* const ds = t.dscores + j * width;
    // Queries before the key are hidden.
    const int64_t hidden = t.causal ? std::min(width, std::max<int64_t>(0, t.j0 + j - t.i0)) : 0;
#pragma omp simd
    for (int64_t i = 0; i < hidden; ++i) {
      simd::store(p[i], 0.0f);
      simd::store(ds[i], 0.0f);
    }
    if (t.factors == nullptr) {
#pragma omp simd
      for (int64_t i = hidden; i < width; ++i) {
        const float e = simd::exp(scale * s[i] - lse[i]);
        const float d = scale * e * (dp[i] - delta[i]);
        simd::store(p[i], e);
        simd::store(ds[i], d);
      }
    } else {
      const float* const z = t.factors + j * width;
#pragma omp simd
      for (int64_t i = hidden; i < width; ++i) {
        const float e = simd::exp(scale * s[i] - lse[i]);
        const float d = scale * e * (z[i] * dp[i] - delta[i]);
        simd::store(p[i], e * z[i]);
        simd::store(ds[i], d);
      }
    }
  }
}

// out[rows keys, width queries] = factors of elements first + i T + j.
void transposed_factors(const DropoutFactors& factors, int64_t first, int64_t T, int64_t rows,
                        int64_t width, float* out) {
  static_assert(attention_tile_rows <= dropout_chunk, "one call fills the keys of a tile");
  float factor[dropout_chunk];
  for (int64_t i = 0; i < width; ++i) {
    factors.fill(factor, first + i * T, rows);
    for (int64_t j = 0; j < rows; ++j) out[j * width + i] = factor[j];
  }
}

template <class A>
void unpack_rows(void* first, int64_t row, int64_t rows, int64_t D, const float* in) {
  A* const out = static_cast<A*>(first);
  for (int64_t t = 0; t < rows; ++t) {
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) simd::store(out[t * row + d], in[t * D + d]);
  }
}

// One key/value head and the query heads that read it.
template <class A>
void backward_head(const AttentionBackward& a, int64_t item, Scratch scratch) {
  const AttentionShape& g = a.shape;
  const int64_t b = item / g.H_kv, h_kv = item % g.H_kv, group = g.H / g.H_kv;
  const int64_t T = g.T_q, D = g.D;
  constexpr int64_t tile = attention_tile_rows * attention_tile_columns;
  constexpr bool in_place = sizeof(A) == sizeof(float);
  const Workspace gemm_workspace = scratch.take_gemm_workspace();
  A* const q = scratch.take<A>(T * D);
  A* const k = scratch.take<A>(T * D);
  A* const v = scratch.take<A>(T * D);
  A* const dout = scratch.take<A>(T * D);
  float* const dq = scratch.take<float>(T * D);
  float* const dk = scratch.take<float>(T * D);
  float* const dv = scratch.take<float>(T * D);
  float* const delta = scratch.take<float>(T);
  float* const scores = scratch.take<float>(tile);
  float* const dprobs = scratch.take<float>(tile);
  A* const probabilities = in_place ? reinterpret_cast<A*>(scores) : scratch.take<A>(tile);
  A* const dscores = in_place ? reinterpret_cast<A*>(dprobs) : scratch.take<A>(tile);
  float* const factor_tile = g.dropout.rate > 0.0 ? scratch.take<float>(tile) : nullptr;
  const DropoutFactors factors(g.dropout);

  const int64_t kv_first = b * g.kv_step + h_kv * D;
  pack_rows(k, static_cast<const A*>(a.k) + kv_first, g.kv_row, T, D);
  pack_rows(v, static_cast<const A*>(a.v) + kv_first, g.kv_row, T, D);
  std::fill(dk, dk + T * D, 0.0f);
  std::fill(dv, dv + T * D, 0.0f);

  for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
    const int64_t out_first = b * g.out_step + h * D;
    pack_rows(q, static_cast<const A*>(a.q) + b * g.q_step + h * D, g.q_row, T, D);
    pack_rows(dout, static_cast<const A*>(a.dout) + out_first, g.out_row, T, D);
    for (int64_t i = 0; i < T; ++i) {
      const A* const out = static_cast<const A*>(a.out) + out_first + i * g.out_row;
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (int64_t d = 0; d < D; ++d) sum += simd::load(dout[i * D + d]) * simd::load(out[d]);
      delta[i] = sum;
    }
    std::fill(dq, dq + T * D, 0.0f);
    const float* const lse = static_cast<const float*>(a.lse) + (b * g.H + h) * g.lse_step;
    const int64_t head = (g.first_sequence + b) * g.H_global + g.first_head + h;

    for (int64_t j0 = 0; j0 < T; j0 += attention_tile_rows) {
      const int64_t rows = std::min(attention_tile_rows, T - j0);
      for (int64_t i0 = g.causal ? j0 : 0; i0 < T; i0 += attention_tile_columns) {
        const int64_t width = std::min(attention_tile_columns, T - i0);
        tile_gemm(scores, rows, width, D, k + j0 * D, false, q + i0 * D, true, false,
                  gemm_workspace);
        tile_gemm(dprobs, rows, width, D, v + j0 * D, false, dout + i0 * D, true, false,
                  gemm_workspace);
        if (factor_tile != nullptr)
          transposed_factors(factors, (head * T + i0) * T + j0, T, rows, width, factor_tile);
        softmax_backward_tile<A>({scores, dprobs, factor_tile, probabilities, dscores, j0, rows, i0,
                                  width, lse + i0, delta + i0, static_cast<float>(g.scale),
                                  g.causal});
        tile_gemm(dv + j0 * D, rows, D, width, probabilities, false, dout + i0 * D, false, true,
                  gemm_workspace);
        tile_gemm(dk + j0 * D, rows, D, width, dscores, false, q + i0 * D, false, true,
                  gemm_workspace);
        tile_gemm(dq + i0 * D, width, D, rows, dscores, true, k + j0 * D, false, true,
                  gemm_workspace);
      }
    }
    unpack_rows<A>(static_cast<A*>(a.dq) + b * a.dq_step + h * D, a.dq_row, T, D, dq);
  }
  const int64_t dkv_first = b * a.dkv_step + h_kv * D;
  unpack_rows<A>(static_cast<A*>(a.dk) + dkv_first, a.dkv_row, T, D, dk);
  unpack_rows<A>(static_cast<A*>(a.dv) + dkv_first, a.dkv_row, T, D, dv);
}

}  // namespace

template <class A>
void attention_backward(Queue& queue, const AttentionBackward& a) {
  if (a.shape.B == 0 || a.shape.T_q == 0) return;
  if (!is_plain(a.shape)) {
    ref::attention_backward<A, float>(queue, a);
    return;
  }
  parallel_heads("gptbench::attention_backward", a.shape.B * a.shape.H_kv, a.shape.T_q, a.shape.D,
                 a.workspace,
                 [=](int64_t item, const Scratch& scratch) { backward_head<A>(a, item, scratch); });
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(attention_backward, AttentionBackward);
}  // namespace gptbench
