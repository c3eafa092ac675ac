#include <cmath>

#include "device/host/attention.h"

namespace gptbench::host {
namespace {

// With P the probabilities, Z dropout factors and delta_i = dout_i . out_i:
//   dv_j = sum_i P_ij Z_ij dout_i,   dS_ij = P_ij (Z_ij dout_i . v_j - delta_i),
//   dq_i = scale sum_j dS_ij k_j,    dk_j = scale sum_i dS_ij q_i.
// The scale is left to the end.

// Statistics of the queries of a panel: lse in units of ln 2, and delta.
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

template <class F>
struct BackwardArrays {
  explicit BackwardArrays(Scratch& scratch, const AttentionShape& s)
      : gemm(scratch.take_gemm_workspace()),
        k(scratch.take<F>(s.T_k * s.D)),
        v(scratch.take<F>(s.T_k * s.D)),
        k_transposed(scratch.take<F>(round_up(s.T_k, attention_tile_keys) * s.D)),
        k_part(scratch.take<F>(attention_tile_keys * s.D)),
        dk(scratch.take<float>(s.T_k * s.D)),
        dv(scratch.take<float>(s.T_k * s.D)),
        q(scratch.take<F>(attention_panels * attention_tile_queries * s.D)),
        dout(scratch.take<F>(attention_panels * attention_tile_queries * s.D)),
        q_transposed(scratch.take<F>(attention_panels * attention_tile_queries * s.D)),
        dout_transposed(scratch.take<F>(attention_panels * attention_tile_queries * s.D)),
        dq(scratch.take<float>(attention_panels * attention_tile_queries * s.D)),
        scores(scratch.take<float>(attention_tile_area)),
        dprobs(scratch.take<float>(attention_tile_area)),
        probabilities(in_place ? reinterpret_cast<F*>(scores)
                               : scratch.take<F>(attention_tile_area)),
        dscores(in_place ? reinterpret_cast<F*>(dprobs) : scratch.take<F>(attention_tile_area)),
        factors(s.dropout.rate > 0.0 ? scratch.take<float>(attention_tile_area) : nullptr) {}

  static constexpr bool in_place = sizeof(F) == sizeof(float);
  Workspace gemm;
  F *k, *v;         // [T_k,D]
  F* k_transposed;  // tiles of keys one after another, each [D,keys of the tile]
  F* k_part;        // keys at the start of a tile of k_transposed
  float *dk, *dv;   // [T_k,D]
  // Reused by one panel of queries after another:
  F *q, *dout;                        // [width,D]
  F *q_transposed, *dout_transposed;  // [D,width]
  float* dq;                          // transposed: [D,width]
  float *scores, *dprobs;             // [rows,width]
  F *probabilities, *dscores;
  float* factors;
};

// The work of one item: tiles of keys `first_keys`, `first_keys` + `step_keys`, ... by panels of
// queries counted likewise, for heads [first_head, end_head); and which gradients it forms.
struct Part {
  int64_t b = 0, h_kv = 0;
  int64_t first_head = 0, end_head = 0;
  int64_t first_keys = 0, step_keys = 1;
  int64_t first_queries = 0, step_queries = 1;
  bool dq = true, dkv = true;

  // All query heads of key head h_kv, of which there are `group`.
  static Part of_keys(int64_t b, int64_t h_kv, int64_t group) {
    Part part;
    part.b = b;
    part.h_kv = h_kv;
    part.first_head = h_kv * group;
    part.end_head = part.first_head + group;
    return part;
  }
};

// Gradients of type A are assigned. Gradients of keys in blocks are float and are added to.
template <class A>
void prefetch_row(const AttentionShape& s, const void* base, int64_t at, int64_t D) {
  if (s.keys == KeyBlock::all)
    prefetch_rows(static_cast<const A*>(base) + at, 0, 1, D, true);
  else
    prefetch_rows(static_cast<const float*>(base) + at, 0, 1, D, true);
}
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

// A panel of queries of one head.
template <class A, class F>
class BackwardPanel {
 public:
  // `place` in the arrays of a tile.
  void start(const AttentionBackward& a, const Part& part, int64_t h, const Queries& queries,
             const BackwardArrays<F>& arrays, int64_t place) {
    const AttentionShape& s = a.shape;
    const int64_t D = s.D, width = queries.width;
    h_ = h;
    queries_ = queries;
    first_ = place * attention_tile_queries * D;
    const A* const q =
        static_cast<const A*>(a.q) + part.b * s.q.step + queries.i0 * s.q.row + h * D;
    const int64_t out_first = part.b * s.out.step + queries.i0 * s.out.row + h * D;
    const A* const dout = static_cast<const A*>(a.dout) + out_first;
    const A* const out = static_cast<const A*>(a.out) + out_first;
    prefetch_rows(q, s.q.row, width, D);
    prefetch_rows(dout, s.out.row, width, D);
    prefetch_rows(out, s.out.row, width, D);
    transpose_rows(arrays.q_transposed + first_, width, q, s.q.row, width, D, arrays.q + first_);
    transpose_rows(arrays.dout_transposed + first_, width, dout, s.out.row, width, D,
                   arrays.dout + first_);
    if (part.dkv) {
      pack_rows(arrays.q + first_, q, s.q.row, width, D);
      pack_rows(arrays.dout + first_, dout, s.out.row, width, D);
    }
    if (s.alibi) bias_.start(s, h, queries);
    const float* const lse =
        static_cast<const float*>(a.lse) + (part.b * s.H + h) * s.lse_step + queries.i0;
    for (int64_t i = 0; i < width; ++i) {
      const A* const out_row = out + i * s.out.row;
      const A* const dout_row = dout + i * s.out.row;
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (int64_t d = 0; d < D; ++d) sum += simd::load(dout_row[d]) * simd::load(out_row[d]);
      numbers_.delta[i] = sum;
      numbers_.lse[i] = lse[i] * log2_e;
    }
    if (part.dq && queries.keys == 0)
      std::fill(arrays.dq + first_, arrays.dq + first_ + D * width, 0.0f);
  }

  // Adds the gradients over the tile of keys from j0 on, as far as the panel sees it.
  void add_keys(const AttentionBackward& a, const Part& part, int64_t j0,
                const BackwardArrays<F>& arrays) {
    if (j0 >= queries_.keys) return;
    const AttentionShape& s = a.shape;
    const Visibility visible{s, part.b};
    const int64_t D = s.D, width = queries_.width;
    const int64_t rows = std::min(attention_tile_keys, queries_.keys - j0);
    const float factor = static_cast<float>(s.scale) * log2_e;
    tile_gemm<F>(arrays.scores, rows, width, D, {arrays.k + j0 * D, D},
                 {arrays.q_transposed + first_, width}, false, arrays.gemm);
    tile_gemm<F>(arrays.dprobs, rows, width, D, {arrays.v + j0 * D, D},
                 {arrays.dout_transposed + first_, width}, false, arrays.gemm);
    if (s.alibi)
      for (int64_t j = 0; j < rows; ++j)
        bias_.add(arrays.scores + j * width, factor, s, j0 + j, width);
    if (arrays.factors != nullptr)
      TileFactors(s, part.b, h_).fill(arrays.factors, queries_, j0, rows);
    softmax_backward_tile(arrays.scores, arrays.dprobs, arrays.factors, arrays.probabilities,
                          arrays.dscores, rows, width, s.alibi ? 1.0f : factor, numbers_);
    for (int64_t j = std::max(j0, queries_.full); j < j0 + rows; ++j) {
      const int64_t hidden = visible.hidden_queries(j, queries_.i0, width);
      const int64_t at = (j - j0) * width;
      std::fill(arrays.probabilities + at, arrays.probabilities + at + hidden, F(0.0f));
      std::fill(arrays.dscores + at, arrays.dscores + at + hidden, F(0.0f));
    }
    if (part.dkv) {
      tile_gemm<F>(arrays.dv + j0 * D, rows, D, width, {arrays.probabilities, width},
                   {arrays.dout + first_, D}, true, arrays.gemm);
      tile_gemm<F>(arrays.dk + j0 * D, rows, D, width, {arrays.dscores, width},
                   {arrays.q + first_, D}, true, arrays.gemm);
    }
    if (part.dq) {
      const F* const k_transposed =
          packed_columns(arrays.k_transposed + j0 * D, attention_tile_keys, D, rows, arrays.k_part);
      tile_gemm<F>(arrays.dq + first_, D, width, rows, {k_transposed, rows},
                   {arrays.dscores, width}, j0 > part.first_keys * attention_tile_keys,
                   arrays.gemm);
    }
  }

  void put_dq(const AttentionBackward& a, const Part& part, const BackwardArrays<F>& arrays) const {
    const AttentionShape& s = a.shape;
    const float scale = static_cast<float>(s.scale);
    const int64_t first = part.b * a.dq_strides.step + queries_.i0 * a.dq_strides.row + h_ * s.D;
    for_each_column(arrays.dq + first_, s.D, queries_.width, arrays.scores,
                    [&](int64_t i, const float* dq) {
                      put_row<A>(s, a.dq, first + i * a.dq_strides.row, s.D,
                                 [=](int64_t d) { return scale * dq[d]; });
                    });
  }

 private:
  int64_t h_ = 0;
  Queries queries_{};
  int64_t first_ = 0;  // where the panel lies in the arrays of a tile
  LinearBias bias_;
  QueryNumbers numbers_;
};

template <class A, class F>
void backward_part(const AttentionBackward& a, const Part& part, Scratch scratch) {
  const AttentionShape& s = a.shape;
  const int64_t D = s.D, tile = attention_tile_keys;
  const BackwardArrays<F> arrays(scratch, s);
  const Visibility visible{s, part.b};
  const int64_t keys = visible.keys_of(s.T_q - 1);
  const int64_t kv_first = part.b * s.kv.step + part.h_kv * D;
  const A* const k = static_cast<const A*>(a.k) + kv_first;
  const A* const v = static_cast<const A*>(a.v) + kv_first;
  const int64_t first_key = part.first_keys * tile, step = part.step_keys * tile;
  for (int64_t j0 = first_key; j0 < s.T_k; j0 += step) {
    const int64_t seen = std::max<int64_t>(0, std::min(tile, keys - j0));
    pack_rows(arrays.k + j0 * D, k + j0 * s.kv.row, s.kv.row, seen, D);
    pack_rows(arrays.v + j0 * D, v + j0 * s.kv.row, s.kv.row, seen, D);
    if (part.dq)
      transpose(arrays.k_transposed + j0 * D, tile, static_cast<const F*>(arrays.k) + j0 * D, D,
                seen, D);
    const int64_t rows = std::min(tile, s.T_k - j0);
    std::fill_n(arrays.dk + j0 * D, rows * D, 0.0f);
    std::fill_n(arrays.dv + j0 * D, rows * D, 0.0f);
  }

  BackwardPanel<A, F> panels[attention_panels];
  for (int64_t h = part.first_head; h < part.end_head; ++h)
    for (int64_t i0 = part.first_queries * attention_tile_queries; i0 < s.T_q;) {
      int64_t count = 0, max_keys = 0;
      for (; count < attention_panels && i0 < s.T_q;
           i0 += part.step_queries * attention_tile_queries) {
        const Queries queries =
            queries_of(visible, i0, std::min(attention_tile_queries, s.T_q - i0));
        const bool seen = queries.keys > first_key;
        if (!seen && !(part.dq && s.keys == KeyBlock::all)) continue;
        panels[count].start(a, part, h, queries, arrays, count);
        ++count;
        max_keys = queries.keys;  // later queries see more
      }
      for (int64_t j0 = first_key; j0 < max_keys; j0 += step)
        for (int64_t p = 0; p < count; ++p) panels[p].add_keys(a, part, j0, arrays);
      if (part.dq)
        for (int64_t p = 0; p < count; ++p) panels[p].put_dq(a, part, arrays);
    }

  if (!part.dkv) return;
  const float scale = static_cast<float>(s.scale);
  for (int64_t j0 = first_key; j0 < s.T_k; j0 += step)
    for (int64_t j = j0; j < std::min(j0 + tile, s.T_k); ++j) {
      if (j + rows_ahead < s.T_k)
        for (void* const gradient : {a.dk, a.dv})
          prefetch_row<A>(
              s, gradient,
              part.b * a.dkv_strides.step + (j + rows_ahead) * a.dkv_strides.row + part.h_kv * D,
              D);
      const int64_t at = part.b * a.dkv_strides.step + j * a.dkv_strides.row + part.h_kv * D;
      const float* const dk = arrays.dk + j * D;
      const float* const dv = arrays.dv + j * D;
      put_row<A>(s, a.dk, at, D, [=](int64_t d) { return scale * dk[d]; });
      put_row<A>(s, a.dv, at, D, [=](int64_t d) { return dv[d]; });
    }
}

}  // namespace

template <class A>
void attention_backward_on(Queue& queue, int64_t threads, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  if (s.B == 0 || s.T_q == 0) return;
  const auto backward = converts_factors<A>(queue) ? backward_part<A, float> : backward_part<A, A>;
  const int64_t heads_kv = s.B * s.H_kv, heads = s.B * s.H, group = s.H / s.H_kv;
  const int64_t key_tiles = ceil_div(s.T_k, attention_tile_keys);
  const int64_t panels = ceil_div(s.T_q, attention_tile_queries);
  const int64_t key_strips = strips_of(heads_kv, key_tiles, threads);
  const int64_t query_strips = strips_of(heads, panels, threads);
  // All gradients of a head at once take five GEMMs per tile. dk and dv take four and dq takes
  // three where they are computed apart, which can occupy more threads than there are heads. Both
  // ways sum in the same order. Rounds of the threads, in GEMMs over a head's tiles:
  const auto rounds = [threads](int64_t items, int64_t products, int64_t of) {
    return static_cast<double>(ceil_div(items, threads) * products) / static_cast<double>(of);
  };
  if (rounds(heads_kv, 5 * group, 1) <= rounds(heads_kv * key_strips, 4 * group, key_strips) +
                                            rounds(heads * query_strips, 3, query_strips)) {
    parallel_items("gptbench::attention_backward", threads, heads_kv, s, a.workspace,
                   [=](int64_t item, const Scratch& scratch) {
                     backward(a, Part::of_keys(item / s.H_kv, item % s.H_kv, group), scratch);
                   });
    return;
  }
  parallel_items("gptbench::attention_backward_keys", threads, heads_kv * key_strips, s,
                 a.workspace, [=](int64_t item, const Scratch& scratch) {
                   const int64_t head = item / key_strips;
                   Part part = Part::of_keys(head / s.H_kv, head % s.H_kv, group);
                   part.first_keys = item % key_strips;
                   part.step_keys = key_strips;
                   part.dq = false;
                   backward(a, part, scratch);
                 });
  parallel_items("gptbench::attention_backward_queries", threads, heads * query_strips, s,
                 a.workspace, [=](int64_t item, const Scratch& scratch) {
                   const int64_t head = item / query_strips;
                   Part part;
                   part.b = head / s.H;
                   part.first_head = head % s.H;
                   part.end_head = part.first_head + 1;
                   part.h_kv = part.first_head / group;
                   part.first_queries = item % query_strips;
                   part.step_queries = query_strips;
                   part.dkv = false;
                   backward(a, part, scratch);
                 });
}

template <class A>
void attention_backward(Queue& queue, const AttentionBackward& a) {
  attention_backward_on<A>(queue, num_threads(), a);
}

template void attention_backward_on<float>(Queue&, int64_t, const AttentionBackward&);
template void attention_backward_on<bfloat16>(Queue&, int64_t, const AttentionBackward&);
template void attention_backward_on<float16>(Queue&, int64_t, const AttentionBackward&);

GPTBENCH_HOST_KERNEL(attention_backward, AttentionBackward)

}  // namespace gptbench::host
