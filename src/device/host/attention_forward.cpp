#include <cmath>
#include <limits>

#include "device/host/attention.h"

namespace gptbench::host {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Running results of a panel's queries (online softmax, Milakov and Gimelshein, arXiv:1805.02867):
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
    top[i] = m == -infinity ? 0.0f : m;  // 0 for queries without a key so far
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

template <class F>
struct ForwardArrays {
  explicit ForwardArrays(Scratch& scratch, const AttentionShape& s)
      : gemm(scratch.take_gemm_workspace()),
        k(scratch.take<F>(s.T_k * s.D)),
        v_transposed(scratch.take<F>(round_up(s.T_k, attention_tile_keys) * s.D)),
        v_part(scratch.take<F>(attention_tile_keys * s.D)),
        q_transposed(scratch.take<F>(attention_panels * attention_tile_queries * s.D)),
        scores(scratch.take<float>(attention_tile_area)),
        probabilities(sizeof(F) == sizeof(float) ? reinterpret_cast<F*>(scores)
                                                 : scratch.take<F>(attention_tile_area)),
        factors(s.dropout.rate > 0.0 ? scratch.take<float>(attention_tile_area) : nullptr),
        accumulator(scratch.take<float>(attention_panels * attention_tile_queries * s.D)) {}

  Workspace gemm;
  F* k;             // [T_k,D]
  F* v_transposed;  // a tile of keys after another, [D,keys of a tile] each
  F* v_part;        // of v_transposed: keys at the start of a tile
  F* q_transposed;  // a panel after another, [D,width] each
  float* scores;    // [rows,width]
  F* probabilities;
  float* factors;
  float* accumulator;  // as q_transposed
};

// A panel of queries of one head.
template <class A, class F>
class ForwardPanel {
 public:
  // `place` in the arrays of a tile.
  void start(const AttentionForward& a, int64_t b, int64_t h, const Queries& queries,
             const ForwardArrays<F>& arrays, int64_t place) {
    const AttentionShape& s = a.shape;
    b_ = b;
    h_ = h;
    queries_ = queries;
    q_transposed_ = arrays.q_transposed + place * attention_tile_queries * s.D;
    accumulator_ = arrays.accumulator + place * attention_tile_queries * s.D;
    const A* const q = static_cast<const A*>(a.q) + b * s.q.step + queries.i0 * s.q.row + h * s.D;
    prefetch_rows(q, s.q.row, queries.width, s.D);
    transpose_rows(q_transposed_, queries.width, q, s.q.row, queries.width, s.D,
                   reinterpret_cast<F*>(accumulator_));  // not in use yet
    if (s.alibi) bias_.start(s, h, queries);
    std::fill(running_.max, running_.max + queries.width, -infinity);
    std::fill(running_.sum, running_.sum + queries.width, 0.0f);
    if (queries.keys == 0) std::fill(accumulator_, accumulator_ + s.D * queries.width, 0.0f);
  }

  // Updates the running results with the tile of keys from j0 on, as far as the panel sees it.
  void add_keys(const AttentionForward& a, int64_t j0, const ForwardArrays<F>& arrays) {
    if (j0 >= queries_.keys) return;
    const AttentionShape& s = a.shape;
    const Visibility visible{s, b_};
    const int64_t width = queries_.width, D = s.D;
    const int64_t rows = std::min(attention_tile_keys, queries_.keys - j0);
    const float factor = static_cast<float>(s.scale) * log2_e;
    tile_gemm<F>(arrays.scores, rows, width, D, {arrays.k + j0 * D, D}, {q_transposed_, width},
                 false, arrays.gemm);
    if (s.alibi)
      for (int64_t j = 0; j < rows; ++j)
        bias_.add(arrays.scores + j * width, factor, s, j0 + j, width);
    for (int64_t j = std::max(j0, queries_.full); j < j0 + rows; ++j) {
      float* const row = arrays.scores + (j - j0) * width;
      std::fill(row, row + visible.hidden_queries(j, queries_.i0, width), -infinity);
    }
    softmax_tile(arrays.scores, arrays.probabilities, rows, width, s.alibi ? 1.0f : factor,
                 running_);
    if (j0 > 0) shrink_columns(accumulator_, D, width, running_.shrink);
    if (arrays.factors != nullptr) {
      TileFactors(s, b_, h_).fill(arrays.factors, queries_, j0, rows);
      F* const p = arrays.probabilities;
      const float* const z = arrays.factors;
#pragma omp simd
      for (int64_t e = 0; e < rows * width; ++e) simd::store(p[e], simd::load(p[e]) * z[e]);
    }
    const F* const v_transposed =
        packed_columns(arrays.v_transposed + j0 * D, attention_tile_keys, D, rows, arrays.v_part);
    tile_gemm<F>(accumulator_, D, width, rows, {v_transposed, rows}, {arrays.probabilities, width},
                 j0 > 0, arrays.gemm);
  }

  // Results from running ones over the keys of this call.
  void finish(const AttentionForward& a, const ForwardArrays<F>& arrays) const {
    const AttentionShape& s = a.shape;
    const int64_t D = s.D, first_out = b_ * s.out.step + queries_.i0 * s.out.row + h_ * D;
    float* const lse = static_cast<float*>(a.lse) + (b_ * s.H + h_) * s.lse_step + queries_.i0;
    for_each_column(accumulator_, D, queries_.width, arrays.scores,
                    [&](int64_t i, const float* sums) {
                      finish_query(a, running_.max[i], running_.sum[i], sums,
                                   first_out + i * s.out.row, lse[i]);
                    });
  }

 private:
  // One query's out and lse; `sums` of values not yet divided by `sum`.
  static void finish_query(const AttentionForward& a, float max, float sum, const float* sums,
                           int64_t out_at, float& lse) {
    const int64_t D = a.shape.D;
    const bool none = sum == 0.0f;
    const float here = none ? -infinity : ln_2 * max + std::log(sum);
    if (a.shape.keys == KeyBlock::all) {
      A* const out = static_cast<A*>(a.out) + out_at;
      const float weight = none ? 0.0f : 1.0f / sum;
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) simd::store(out[d], sums[d] * weight);
      lse = here;
      return;
    }
    float* const out = static_cast<float*>(a.out) + out_at;
    const float before = a.shape.keys == KeyBlock::further ? lse : -infinity;
    const float top = before > here ? before : here;  // NaN where `here` is
    const bool nothing = before == -infinity && here == -infinity;
    const float together =
        nothing ? -infinity : top + std::log(std::exp(before - top) + std::exp(here - top));
    const float kept = before == -infinity ? 0.0f : std::exp(before - together);
    const float weight = none ? 0.0f : std::exp(here - together) / sum;
    if (kept == 0.0f) {
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) out[d] = sums[d] * weight;
    } else {
#pragma omp simd
      for (int64_t d = 0; d < D; ++d) out[d] = kept * out[d] + sums[d] * weight;
    }
    lse = together;
  }

  int64_t b_ = 0, h_ = 0;
  Queries queries_{};
  F* q_transposed_ = nullptr;
  float* accumulator_ = nullptr;
  LinearBias bias_;
  Running running_;
};

// Panels `strip`, `strip` + `strips`, ... of the queries of those heads that read one key/value
// head.
template <class A, class F>
void forward_strip(const AttentionForward& a, int64_t b, int64_t h_kv, int64_t strip,
                   int64_t strips, Scratch scratch) {
  const AttentionShape& s = a.shape;
  const int64_t D = s.D, group = s.H / s.H_kv, step = strips * attention_tile_queries;
  const ForwardArrays<F> arrays(scratch, s);
  const Visibility visible{s, b};
  const int64_t keys = visible.keys_of(s.T_q - 1);
  const int64_t kv_first = b * s.kv.step + h_kv * D;
  const A* const k = static_cast<const A*>(a.k) + kv_first;
  const A* const v = static_cast<const A*>(a.v) + kv_first;
  pack_rows(arrays.k, k, s.kv.row, keys, D);
  for (int64_t j0 = 0; j0 < keys; j0 += attention_tile_keys) {
    prefetch_rows(v + j0 * s.kv.row, s.kv.row, std::min(attention_tile_keys, keys - j0), D);
    transpose_rows(arrays.v_transposed + j0 * D, attention_tile_keys, v + j0 * s.kv.row, s.kv.row,
                   std::min(attention_tile_keys, keys - j0), D, arrays.v_part);
  }
  ForwardPanel<A, F> panels[attention_panels];
  for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h)
    for (int64_t i0 = strip * attention_tile_queries; i0 < s.T_q;) {
      int64_t count = 0, max_keys = 0;
      for (; count < attention_panels && i0 < s.T_q; i0 += step) {
        const Queries queries =
            queries_of(visible, i0, std::min(attention_tile_queries, s.T_q - i0));
        if (queries.keys == 0 && s.keys == KeyBlock::further) continue;
        panels[count].start(a, b, h, queries, arrays, count);
        ++count;
        max_keys = queries.keys;  // later queries see more
      }
      for (int64_t j0 = 0; j0 < max_keys; j0 += attention_tile_keys)
        for (int64_t p = 0; p < count; ++p) panels[p].add_keys(a, j0, arrays);
      for (int64_t p = 0; p < count; ++p) panels[p].finish(a, arrays);
    }
}

}  // namespace

template <class A>
void attention_forward_on(Queue& queue, int64_t threads, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  if (s.B == 0 || s.T_q == 0) return;
  const int64_t heads = s.B * s.H_kv;
  const int64_t strips = strips_of(heads, ceil_div(s.T_q, attention_tile_queries), threads);
  const auto strip = converts_factors<A>(queue) ? forward_strip<A, float> : forward_strip<A, A>;
  parallel_items("gptbench::attention_forward", threads, heads * strips, s, a.workspace,
                 [=](int64_t item, const Scratch& scratch) {
                   const int64_t head = item / strips;
                   strip(a, head / s.H_kv, head % s.H_kv, item % strips, strips, scratch);
                 });
}

template <class A>
void attention_forward(Queue& queue, const AttentionForward& a) {
  attention_forward_on<A>(queue, num_threads(), a);
}

template void attention_forward_on<float>(Queue&, int64_t, const AttentionForward&);
template void attention_forward_on<bfloat16>(Queue&, int64_t, const AttentionForward&);
template void attention_forward_on<float16>(Queue&, int64_t, const AttentionForward&);

GPTBENCH_HOST_KERNEL(attention_forward, AttentionForward)

}  // namespace gptbench::host
