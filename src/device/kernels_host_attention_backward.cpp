#include <cmath>

#include "device/kernels_host_attention.h"

namespace gptbench::host {
namespace {

// With P the probabilities, Z dropout factors and delta_i = dout_i . out_i:
//   dv_j = sum_i P_ij Z_ij dout_i,   dS_ij = P_ij (Z_ij dout_i . v_j - delta_i),
//   dq_i = scale sum_j dS_ij k_j,    dk_j = scale sum_i dS_ij q_i.
// The scale is left to the end.

// Of the queries of a tile: lse in units of ln 2, and delta.
struct QueryNumbers {
  float lse[attention_tile_queries];
  float delta[attention_tile_queries];
};

// Scores S and dP become P Z and dS (the same memory for float). `factors` Z, or null.
template <class A>
void softmax_backward_tile(const float* scores, const float* dprobs, const float* factors,
                           A* probabilities, A* dscores, int64_t rows, int64_t width, float factor,
                           const QueryNumbers& numbers) {
  const float* const lse = numbers.lse;
  const float* const delta = numbers.delta;
  for (int64_t j = 0; j < rows; ++j) {
    const float* const s = scores + j * width;
    const float* const dp = dprobs + j * width;
    A* const p = probabilities + j * width;
    A* const ds = dscores + j * width;
    if (factors == nullptr) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        const float e = simd::exp2(factor * s[i] - lse[i]);
        const float d = e * (dp[i] - delta[i]);
        simd::store(p[i], e);
        simd::store(ds[i], d);
      }
    } else {
      const float* const z = factors + j * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        const float e = simd::exp2(factor * s[i] - lse[i]);
        const float d = e * (z[i] * dp[i] - delta[i]);
        simd::store(p[i], e * z[i]);
        simd::store(ds[i], d);
      }
    }
  }
}

template <class A>
struct BackwardArrays {
  explicit BackwardArrays(Scratch& scratch, const AttentionShape& s)
      : gemm(scratch.take_gemm_workspace()),
        k(scratch.take<A>(s.T_k * s.D)),
        v(scratch.take<A>(s.T_k * s.D)),
        k_transposed(scratch.take<A>(round_up(s.T_k, attention_tile_keys) * s.D)),
        dk(scratch.take<float>(s.T_k * s.D)),
        dv(scratch.take<float>(s.T_k * s.D)),
        q(scratch.take<A>(attention_tile_queries * s.D)),
        dout(scratch.take<A>(attention_tile_queries * s.D)),
        q_transposed(scratch.take<A>(attention_tile_queries * s.D)),
        dout_transposed(scratch.take<A>(attention_tile_queries * s.D)),
        dq(scratch.take<float>(attention_tile_queries * s.D)),
        scores(scratch.take<float>(attention_tile_area)),
        dprobs(scratch.take<float>(attention_tile_area)),
        probabilities(in_place ? reinterpret_cast<A*>(scores)
                               : scratch.take<A>(attention_tile_area)),
        dscores(in_place ? reinterpret_cast<A*>(dprobs) : scratch.take<A>(attention_tile_area)),
        factors(s.dropout.rate > 0.0 ? scratch.take<float>(attention_tile_area) : nullptr) {}

  static constexpr bool in_place = sizeof(A) == sizeof(float);
  Workspace gemm;
  A *k, *v;                           // [T_k,D]
  A* k_transposed;                    // a tile of keys after another, [D,keys of a tile] each
  float *dk, *dv;                     // [T_k,D]
  A *q, *dout;                        // [width,D]
  A *q_transposed, *dout_transposed;  // [D,width]
  float* dq;                          // transposed: [D,width]
  float *scores, *dprobs;             // [rows,width]
  A *probabilities, *dscores;
  float* factors;
};

// Tiles that one item has a part in: those of keys `first_keys`, `first_keys` + `step_keys`, ... by
// those of queries, of heads [first_head, end_head); and which gradients it is to yield.
struct Part {
  int64_t b, h_kv;
  int64_t first_head, end_head;
  int64_t first_keys, step_keys;
  int64_t first_queries, step_queries;
  bool dq, dkv;
};

// A gradient of type A is assigned; one of type float, of keys in blocks, added to.
template <class A, class Value>
void put_row(const AttentionShape& s, void* base, int64_t at, int64_t D, const Value& value) {
  if (s.keys == KeyBlock::all) {
    A* const out = static_cast<A*>(base) + at;
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) simd::store(out[d], value(d));
  } else {
    float* const out = static_cast<float*>(base) + at;
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) out[d] += value(d);
  }
}

template <class A>
void pack_queries(const AttentionBackward& a, const Part& part, int64_t h, const Queries& queries,
                  const BackwardArrays<A>& arrays, QueryNumbers& numbers) {
  const AttentionShape& s = a.shape;
  const int64_t D = s.D, width = queries.width;
  const A* const q = static_cast<const A*>(a.q) + part.b * s.q_step + queries.i0 * s.q_row + h * D;
  const int64_t out_first = part.b * s.out_step + queries.i0 * s.out_row + h * D;
  const A* const dout = static_cast<const A*>(a.dout) + out_first;
  pack_transposed(arrays.q_transposed, width, q, s.q_row, width, D);
  pack_transposed(arrays.dout_transposed, width, dout, s.out_row, width, D);
  if (part.dkv) {
    pack_rows(arrays.q, q, s.q_row, width, D);
    pack_rows(arrays.dout, dout, s.out_row, width, D);
  }
  const float* const lse =
      static_cast<const float*>(a.lse) + (part.b * s.H + h) * s.lse_step + queries.i0;
  for (int64_t i = 0; i < width; ++i) {
    const A* const out_row = static_cast<const A*>(a.out) + out_first + i * s.out_row;
    const A* const dout_row = dout + i * s.out_row;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t d = 0; d < D; ++d) sum += simd::load(dout_row[d]) * simd::load(out_row[d]);
    numbers.delta[i] = sum;
    numbers.lse[i] = lse[i] * log2_e;
  }
}

template <class A>
void backward_queries(const AttentionBackward& a, const Part& part, int64_t h,
                      const Queries& queries, const BackwardArrays<A>& arrays) {
  const AttentionShape& s = a.shape;
  const Visibility visible{s, part.b};
  const int64_t D = s.D, width = queries.width, tile_keys = attention_tile(s.T_k).keys;
  QueryNumbers numbers;
  pack_queries(a, part, h, queries, arrays, numbers);
  const float factor = static_cast<float>(s.scale) * log2_e;
  LinearBias bias;
  if (s.alibi) bias.start(s, h, queries);
  const TileFactors factors(s, part.b, h);

  const int64_t first = part.first_keys * tile_keys;
  for (int64_t j0 = first; j0 < queries.keys; j0 += part.step_keys * tile_keys) {
    const int64_t rows = std::min(tile_keys, queries.keys - j0);
    tile_gemm<A>(arrays.scores, rows, width, D, {arrays.k + j0 * D, D},
                 {arrays.q_transposed, width}, false, arrays.gemm);
    tile_gemm<A>(arrays.dprobs, rows, width, D, {arrays.v + j0 * D, D},
                 {arrays.dout_transposed, width}, false, arrays.gemm);
    if (s.alibi)
      for (int64_t j = 0; j < rows; ++j)
        bias.add(arrays.scores + j * width, factor, s, j0 + j, width);
    if (arrays.factors != nullptr) factors.fill(arrays.factors, queries, j0, rows);
    softmax_backward_tile(arrays.scores, arrays.dprobs, arrays.factors, arrays.probabilities,
                          arrays.dscores, rows, width, s.alibi ? 1.0f : factor, numbers);
    for (int64_t j = std::max(j0, queries.full); j < j0 + rows; ++j) {
      const int64_t hidden = visible.hidden_queries(j, queries.i0, width);
      const int64_t at = (j - j0) * width;
      std::fill(arrays.probabilities + at, arrays.probabilities + at + hidden, A(0.0f));
      std::fill(arrays.dscores + at, arrays.dscores + at + hidden, A(0.0f));
    }
    if (part.dkv) {
      tile_gemm<A>(arrays.dv + j0 * D, rows, D, width, {arrays.probabilities, width},
                   {arrays.dout, D}, true, arrays.gemm);
      tile_gemm<A>(arrays.dk + j0 * D, rows, D, width, {arrays.dscores, width}, {arrays.q, D}, true,
                   arrays.gemm);
    }
    if (part.dq)
      tile_gemm<A>(arrays.dq, D, width, rows, {arrays.k_transposed + j0 * D, tile_keys},
                   {arrays.dscores, width}, j0 > first, arrays.gemm);
  }
  if (!part.dq) return;
  if (queries.keys == 0) std::fill(arrays.dq, arrays.dq + D * width, 0.0f);
  const float scale = static_cast<float>(s.scale);
  for (int64_t i = 0; i < width; ++i) {
    const float* const column = arrays.dq + i;
    put_row<A>(s, a.dq, part.b * a.dq_step + (queries.i0 + i) * a.dq_row + h * D, D,
               [=](int64_t d) { return scale * column[d * width]; });
  }
}

template <class A>
void backward_part(const AttentionBackward& a, const Part& part, Scratch scratch) {
  const AttentionShape& s = a.shape;
  const AttentionTile tile = attention_tile(s.T_k);
  const int64_t D = s.D;
  const BackwardArrays<A> arrays(scratch, s);
  const Visibility visible{s, part.b};
  const int64_t keys = visible.keys_of(s.T_q - 1);
  const int64_t kv_first = part.b * s.kv_step + part.h_kv * D;
  const A* const k = static_cast<const A*>(a.k) + kv_first;
  const A* const v = static_cast<const A*>(a.v) + kv_first;
  const int64_t step = part.step_keys * tile.keys;
  for (int64_t j0 = part.first_keys * tile.keys; j0 < s.T_k; j0 += step) {
    const int64_t seen = std::max<int64_t>(0, std::min(tile.keys, keys - j0));
    pack_rows(arrays.k + j0 * D, k + j0 * s.kv_row, s.kv_row, seen, D);
    pack_rows(arrays.v + j0 * D, v + j0 * s.kv_row, s.kv_row, seen, D);
    if (part.dq)
      pack_transposed(arrays.k_transposed + j0 * D, tile.keys, k + j0 * s.kv_row, s.kv_row, seen,
                      D);
    const int64_t rows = std::min(tile.keys, s.T_k - j0);
    std::fill_n(arrays.dk + j0 * D, rows * D, 0.0f);
    std::fill_n(arrays.dv + j0 * D, rows * D, 0.0f);
  }

  for (int64_t h = part.first_head; h < part.end_head; ++h)
    for (int64_t i0 = part.first_queries * tile.queries; i0 < s.T_q;
         i0 += part.step_queries * tile.queries) {
      const Queries queries = queries_of(visible, i0, std::min(tile.queries, s.T_q - i0));
      const bool seen = queries.keys > part.first_keys * tile.keys;
      if (seen || (part.dq && s.keys == KeyBlock::all))
        backward_queries(a, part, h, queries, arrays);
    }

  if (!part.dkv) return;
  const float scale = static_cast<float>(s.scale);
  for (int64_t j0 = part.first_keys * tile.keys; j0 < s.T_k; j0 += step)
    for (int64_t j = j0; j < std::min(j0 + tile.keys, s.T_k); ++j) {
      const int64_t at = part.b * a.dkv_step + j * a.dkv_row + part.h_kv * D;
      const float* const dk = arrays.dk + j * D;
      const float* const dv = arrays.dv + j * D;
      put_row<A>(s, a.dk, at, D, [=](int64_t d) { return scale * dk[d]; });
      put_row<A>(s, a.dv, at, D, [=](int64_t d) { return dv[d]; });
    }
}

}  // namespace

template <class A>
void attention_backward_on(int64_t threads, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  if (s.B == 0 || s.T_q == 0) return;
  const AttentionTile tile = attention_tile(s.T_k);
  const int64_t heads_kv = s.B * s.H_kv, heads = s.B * s.H, group = s.H / s.H_kv;
  const int64_t key_tiles = ceil_div(s.T_k, tile.keys), query_tiles = ceil_div(s.T_q, tile.queries);
  const int64_t key_strips = strips_of(heads_kv, key_tiles, threads);
  const int64_t query_strips = strips_of(heads, query_tiles, threads);
  // All gradients of a head at once take five products a tile. Where heads are fewer than threads,
  // dk and dv apart from dq, which take four and three, can be shared out further. Both ways sum in
  // the same order. Rounds of the threads, in products of a head's tiles:
  const auto rounds = [threads](int64_t items, int64_t products, int64_t of) {
    return static_cast<double>(ceil_div(items, threads) * products) / static_cast<double>(of);
  };
  if (rounds(heads_kv, 5 * group, 1) <= rounds(heads_kv * key_strips, 4 * group, key_strips) +
                                            rounds(heads * query_strips, 3, query_strips)) {
    parallel_items("gptbench::attention_backward", threads, heads_kv, s, a.workspace,
                   [=](int64_t item, const Scratch& scratch) {
                     const int64_t b = item / s.H_kv, h_kv = item % s.H_kv;
                     backward_part<A>(
                         a, {b, h_kv, h_kv * group, (h_kv + 1) * group, 0, 1, 0, 1, true, true},
                         scratch);
                   });
    return;
  }
  parallel_items(
      "gptbench::attention_backward_keys", threads, heads_kv * key_strips, s, a.workspace,
      [=](int64_t item, const Scratch& scratch) {
        const int64_t head = item / key_strips, strip = item % key_strips;
        const int64_t b = head / s.H_kv, h_kv = head % s.H_kv;
        backward_part<A>(
            a, {b, h_kv, h_kv * group, (h_kv + 1) * group, strip, key_strips, 0, 1, false, true},
            scratch);
      });
  parallel_items("gptbench::attention_backward_queries", threads, heads * query_strips, s,
                 a.workspace, [=](int64_t item, const Scratch& scratch) {
                   const int64_t head = item / query_strips, strip = item % query_strips;
                   const int64_t b = head / s.H, h = head % s.H;
                   backward_part<A>(
                       a, {b, h / group, h, h + 1, 0, 1, strip, query_strips, true, false},
                       scratch);
                 });
}

template <class A>
void attention_backward(Queue&, const AttentionBackward& a) {
  attention_backward_on<A>(num_threads(), a);
}

template void attention_backward_on<float>(int64_t, const AttentionBackward&);
template void attention_backward_on<bfloat16>(int64_t, const AttentionBackward&);

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(attention_backward, AttentionBackward);
}  // namespace gptbench
