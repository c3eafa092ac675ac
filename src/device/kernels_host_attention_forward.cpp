#include <cmath>
#include <limits>

#include "device/kernels_host_attention.h"

namespace gptbench::host {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Running results of a tile's queries (online softmax, Milakov and Gimelshein, arXiv:1805.02867):
// maximum of the scores in units of ln 2, sum of 2^(score - maximum), and what the accumulator of
// earlier keys is to be multiplied with.
struct Running {
  float max[attention_tile_queries];
  float sum[attention_tile_queries];
  float shrink[attention_tile_queries];
};

// One tile of scores S[rows,width], times `factor` in units of ln 2, becomes P = 2^(S - maximum)
// (the same memory as S for float); `running` follows.
template <class A>
void softmax_tile(const float* scores, A* probabilities, int64_t rows, int64_t width, float factor,
                  Running& running) {
  float top[attention_tile_queries], part[attention_tile_queries];
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    top[i] = -infinity;
    part[i] = 0.0f;
  }
  const int64_t fours = rows / 4 * 4;
  for (int64_t j = 0; j < fours; j += 4) {
    const float* const s = scores + j * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float a = simd::larger(s[i], s[width + i]);
      const float b = simd::larger(s[2 * width + i], s[3 * width + i]);
      top[i] = simd::larger(simd::larger(a, b), top[i]);
    }
  }
  for (int64_t j = fours; j < rows; ++j) {
    const float* const s = scores + j * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) top[i] = simd::larger(s[i], top[i]);
  }
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const float m = simd::larger(running.max[i], factor * top[i]);
    running.shrink[i] = m == -infinity ? 1.0f : simd::exp2(running.max[i] - m);
    running.max[i] = m;
    top[i] = m == -infinity ? 0.0f : m;  // of queries that have seen no key so far
  }
  for (int64_t j = 0; j < fours; j += 4) {
    const float* const s = scores + j * width;
    A* const p = probabilities + j * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float e0 = simd::exp2(factor * s[i] - top[i]);
      const float e1 = simd::exp2(factor * s[width + i] - top[i]);
      const float e2 = simd::exp2(factor * s[2 * width + i] - top[i]);
      const float e3 = simd::exp2(factor * s[3 * width + i] - top[i]);
      simd::store(p[i], e0);
      simd::store(p[width + i], e1);
      simd::store(p[2 * width + i], e2);
      simd::store(p[3 * width + i], e3);
      part[i] += (e0 + e1) + (e2 + e3);
    }
  }
  for (int64_t j = fours; j < rows; ++j) {
    const float* const s = scores + j * width;
    A* const p = probabilities + j * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float e = simd::exp2(factor * s[i] - top[i]);
      simd::store(p[i], e);
      part[i] += e;
    }
  }
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) running.sum[i] = running.sum[i] * running.shrink[i] + part[i];
}

// accumulator[D,width] times shrink[width].
void shrink_columns(float* accumulator, int64_t D, int64_t width, const float* shrink) {
  for (int64_t d = 0; d < D; ++d) {
    float* const row = accumulator + d * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) row[i] *= shrink[i];
  }
}

template <class A>
struct ForwardArrays {
  explicit ForwardArrays(Scratch& scratch, const AttentionShape& s)
      : gemm(scratch.take_gemm_workspace()),
        k(scratch.take<A>(s.T_k * s.D)),
        v_transposed(scratch.take<A>(round_up(s.T_k, attention_tile_keys) * s.D)),
        q_transposed(scratch.take<A>(attention_tile_queries * s.D)),
        scores(scratch.take<float>(attention_tile_area)),
        probabilities(sizeof(A) == sizeof(float) ? reinterpret_cast<A*>(scores)
                                                 : scratch.take<A>(attention_tile_area)),
        factors(s.dropout.rate > 0.0 ? scratch.take<float>(attention_tile_area) : nullptr),
        accumulator(scratch.take<float>(attention_tile_queries * s.D)) {}

  Workspace gemm;
  A* k;             // [T_k,D]
  A* v_transposed;  // a tile of keys after another, [D,keys of a tile] each
  A* q_transposed;  // [D,width]
  float* scores;    // [rows,width]
  A* probabilities;
  float* factors;
  float* accumulator;  // [D,width]
};

// Results of a tile's queries from running ones over the keys of this call.
template <class A>
void finish(const AttentionForward& a, int64_t b, int64_t h, const Queries& queries,
            const Running& running, const float* accumulator) {
  const AttentionShape& s = a.shape;
  const int64_t width = queries.width, D = s.D;
  const int64_t first_out = b * s.out_step + queries.i0 * s.out_row + h * D;
  float* const lse = static_cast<float*>(a.lse) + (b * s.H + h) * s.lse_step + queries.i0;
  for (int64_t i = 0; i < width; ++i) {
    const bool none = running.sum[i] == 0.0f;
    const float here = none ? -infinity : ln_2 * running.max[i] + std::log(running.sum[i]);
    const float* const column = accumulator + i;
    if (s.keys == KeyBlock::all) {
      A* const out = static_cast<A*>(a.out) + first_out + i * s.out_row;
      const float weight = none ? 0.0f : 1.0f / running.sum[i];
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) simd::store(out[d], column[d * width] * weight);
      lse[i] = here;
      continue;
    }
    float* const out = static_cast<float*>(a.out) + first_out + i * s.out_row;
    const float before = s.keys == KeyBlock::further ? lse[i] : -infinity;
    const float top = before > here ? before : here;  // NaN where `here` is
    const bool nothing = before == -infinity && here == -infinity;
    const float together =
        nothing ? -infinity : top + std::log(std::exp(before - top) + std::exp(here - top));
    const float kept = before == -infinity ? 0.0f : std::exp(before - together);
    const float weight = none ? 0.0f : std::exp(here - together) / running.sum[i];
    if (kept == 0.0f) {
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) out[d] = column[d * width] * weight;
    } else {
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) out[d] = kept * out[d] + column[d * width] * weight;
    }
    lse[i] = together;
  }
}

template <class A>
void forward_tile(const AttentionForward& a, int64_t b, int64_t h, const Queries& queries,
                  const ForwardArrays<A>& arrays) {
  const AttentionShape& s = a.shape;
  const Visibility visible{s, b};
  const int64_t width = queries.width, D = s.D, tile_keys = attention_tile(s.T_k).keys;
  pack_transposed(arrays.q_transposed, width,
                  static_cast<const A*>(a.q) + b * s.q_step + queries.i0 * s.q_row + h * D, s.q_row,
                  width, D);
  float factor = static_cast<float>(s.scale) * log2_e;
  LinearBias bias;
  if (s.alibi) bias.start(s, h, queries);
  const TileFactors factors(s, b, h);
  Running running;
  std::fill(running.max, running.max + width, -infinity);
  std::fill(running.sum, running.sum + width, 0.0f);

  for (int64_t j0 = 0; j0 < queries.keys; j0 += tile_keys) {
    const int64_t rows = std::min(tile_keys, queries.keys - j0);
    tile_gemm<A>(arrays.scores, rows, width, D, {arrays.k + j0 * D, D},
                 {arrays.q_transposed, width}, false, arrays.gemm);
    if (s.alibi)
      for (int64_t j = 0; j < rows; ++j)
        bias.add(arrays.scores + j * width, factor, s, j0 + j, width);
    for (int64_t j = std::max(j0, queries.full); j < j0 + rows; ++j) {
      float* const row = arrays.scores + (j - j0) * width;
      std::fill(row, row + visible.hidden_queries(j, queries.i0, width), -infinity);
    }
    softmax_tile(arrays.scores, arrays.probabilities, rows, width, s.alibi ? 1.0f : factor,
                 running);
    if (j0 > 0) shrink_columns(arrays.accumulator, D, width, running.shrink);
    if (arrays.factors != nullptr) {
      factors.fill(arrays.factors, queries, j0, rows);
      A* const p = arrays.probabilities;
      const float* const z = arrays.factors;
#pragma omp simd
      for (int64_t e = 0; e < rows * width; ++e) simd::store(p[e], simd::load(p[e]) * z[e]);
    }
    tile_gemm<A>(arrays.accumulator, D, width, rows, {arrays.v_transposed + j0 * D, tile_keys},
                 {arrays.probabilities, width}, j0 > 0, arrays.gemm);
  }
  if (queries.keys == 0) std::fill(arrays.accumulator, arrays.accumulator + D * width, 0.0f);
  finish<A>(a, b, h, queries, running, arrays.accumulator);
}

// Tiles `strip`, `strip` + `strips`, ... of the queries of those heads that read one key/value
// head.
template <class A>
void forward_strip(const AttentionForward& a, int64_t b, int64_t h_kv, int64_t strip,
                   int64_t strips, Scratch scratch) {
  const AttentionShape& s = a.shape;
  const AttentionTile tile = attention_tile(s.T_k);
  const int64_t D = s.D, group = s.H / s.H_kv;
  const ForwardArrays<A> arrays(scratch, s);
  const Visibility visible{s, b};
  const int64_t keys = visible.keys_of(s.T_q - 1);
  const int64_t kv_first = b * s.kv_step + h_kv * D;
  pack_rows(arrays.k, static_cast<const A*>(a.k) + kv_first, s.kv_row, keys, D);
  for (int64_t j0 = 0; j0 < keys; j0 += tile.keys)
    pack_transposed(arrays.v_transposed + j0 * D, tile.keys,
                    static_cast<const A*>(a.v) + kv_first + j0 * s.kv_row, s.kv_row,
                    std::min(tile.keys, keys - j0), D);
  for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h)
    for (int64_t i0 = strip * tile.queries; i0 < s.T_q; i0 += strips * tile.queries) {
      const Queries queries = queries_of(visible, i0, std::min(tile.queries, s.T_q - i0));
      if (queries.keys == 0 && s.keys == KeyBlock::further) continue;
      forward_tile(a, b, h, queries, arrays);
    }
}

}  // namespace

template <class A>
void attention_forward_on(int64_t threads, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  if (s.B == 0 || s.T_q == 0) return;
  const int64_t heads = s.B * s.H_kv;
  const int64_t strips = strips_of(heads, ceil_div(s.T_q, attention_tile(s.T_k).queries), threads);
  parallel_items("gptbench::attention_forward", threads, heads * strips, s, a.workspace,
                 [=](int64_t item, const Scratch& scratch) {
                   const int64_t head = item / strips;
                   forward_strip<A>(a, head / s.H_kv, head % s.H_kv, item % strips, strips,
                                    scratch);
                 });
}

template <class A>
void attention_forward(Queue&, const AttentionForward& a) {
  attention_forward_on<A>(num_threads(), a);
}

template void attention_forward_on<float>(int64_t, const AttentionForward&);
template void attention_forward_on<bfloat16>(int64_t, const AttentionForward&);

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(attention_forward, AttentionForward);
}  // namespace gptbench
