#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/dropout.h"
#include "device/ref/kernels.h"

namespace gptbench {

double alibi_slope(int64_t h, int64_t H) {
  int64_t n = 1;
  while (n < H) n *= 2;
  // Where H is not a power of two the odd-numbered slopes come first.
  const int64_t odd = n / 2;
  const int64_t place = n == H ? h : h < odd ? 2 * h + 1 : 2 * (h - odd);
  return std::exp2(-8.0 * static_cast<double>(place + 1) / static_cast<double>(n));
}

namespace ref {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// One (b, h) of an attention call: where its elements lie. `Arguments` is either direction's.
template <class A, class Arguments>
struct Head {
  const Arguments& a;
  int64_t b, h;

  const AttentionShape& s() const { return a.shape; }
  int64_t h_kv() const { return h / (s().H / s().H_kv); }
  int64_t q(int64_t i) const { return b * s().q.step + i * s().q.row + h * s().D; }
  int64_t k(int64_t j) const { return b * s().kv.step + j * s().kv.row + h_kv() * s().D; }
  int64_t out(int64_t i) const { return b * s().out.step + i * s().out.row + h * s().D; }
  int64_t lse(int64_t i) const { return (b * s().H + h) * s().lse_step + i; }

  bool visible(int64_t i, int64_t j) const {
    const int64_t key = position_of(s().k_positions, j);
    if (s().lengths != nullptr && key >= s().lengths[b]) return false;
    return !s().causal || key <= position_of(s().q_positions, i);
  }
  double score(int64_t i, int64_t j) const {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t d = 0; d < s().D; ++d) sum += load<A>(a.q, q(i) + d) * load<A>(a.k, k(j) + d);
    double bias = 0.0;
    if (s().alibi) {
      const int64_t distance = position_of(s().q_positions, i) - position_of(s().k_positions, j);
      bias = -alibi_slope(s().global.first_head + h, s().global.H) *
             static_cast<double>(std::abs(distance));
    }
    return s().scale * sum + bias;
  }
  double dropped(int64_t i, int64_t j) const {
    const int64_t T = s().global.T;
    const int64_t row = head_of(s().global, b, h) * T + position_of(s().q_positions, i);
    return dropout_factor(s().dropout, row * T + position_of(s().k_positions, j));
  }
};

// Memory for sums in double, kept from call to call.
double* scratch(int64_t elements) {
  static thread_local std::vector<double> memory;
  if (static_cast<int64_t>(memory.size()) < elements) memory.resize(static_cast<size_t>(elements));
  return memory.data();
}

// p[j] = score of query i and key j where visible; returns the logarithm of the sum of their
// exponentials, -inf where no key is.
template <class H>
double log_sum(const H& head, int64_t i, int64_t T_k, double* p) {
  double row_max = -infinity;
  for (int64_t j = 0; j < T_k; ++j)
    if (head.visible(i, j)) row_max = std::max(row_max, p[j] = head.score(i, j));
  double row_sum = 0.0;
  for (int64_t j = 0; j < T_k; ++j)
    if (head.visible(i, j)) row_sum += std::exp(p[j] - row_max);
  return row_sum > 0.0 || std::isnan(row_sum) ? row_max + std::log(row_sum) : -infinity;
}

// out and lse of query i. Results of type Out: A, or S where keys come in blocks.
template <class A, class S, class Out>
void forward_query(const Head<A, AttentionForward>& head, int64_t i) {
  const AttentionForward& a = head.a;
  const AttentionShape& s = a.shape;
  const double before = s.keys == KeyBlock::further ? load<S>(a.lse, head.lse(i)) : -infinity;
  double* const p = scratch(s.T_k + s.D);
  double* const sum = p + s.T_k;
  const double here = log_sum(head, i, s.T_k, p);
  const double top = before > here ? before : here;  // NaN where `here` is
  const double lse = before == -infinity && here == -infinity
                         ? -infinity
                         : top + std::log(std::exp(before - top) + std::exp(here - top));
  const double kept = before == -infinity ? 0.0 : std::exp(before - lse);
  for (int64_t d = 0; d < s.D; ++d)
    sum[d] = kept != 0.0 ? kept * load<Out>(a.out, head.out(i) + d) : 0.0;
  for (int64_t j = 0; j < s.T_k; ++j) {
    if (!head.visible(i, j)) continue;
    const double weight = std::exp(p[j] - lse) * head.dropped(i, j);
    const int64_t v = head.k(j);
#pragma omp simd
    for (int64_t d = 0; d < s.D; ++d) sum[d] += weight * load<A>(a.v, v + d);
  }
  for (int64_t d = 0; d < s.D; ++d) store<Out>(a.out, head.out(i) + d, sum[d]);
  store<S>(a.lse, head.lse(i), lse);
}

// With P the probabilities, Z their dropout factors and delta_i = dout_i . out_i:
//   dv_j = sum_i P_ij Z_ij dout_i,   dS_ij = P_ij (Z_ij dout_i . v_j - delta_i),
//   dq_i = scale sum_j dS_ij k_j,    dk_j = scale sum_i dS_ij q_i.
// Query i: assigns dq[D], adds to dk and dv [T_k, D]; dq and dk without `scale`.
template <class A, class S>
void backward_query(const Head<A, AttentionBackward>& head, int64_t i, double* dq, double* dk,
                    double* dv) {
  const AttentionBackward& a = head.a;
  const int64_t D = a.shape.D, q = head.q(i), out = head.out(i);
  double delta = 0.0;
  for (int64_t d = 0; d < D; ++d) delta += load<A>(a.dout, out + d) * load<A>(a.out, out + d);
  std::fill(dq, dq + D, 0.0);
  for (int64_t j = 0; j < a.shape.T_k; ++j) {
    if (!head.visible(i, j)) continue;
    const int64_t k = head.k(j);
    double dp = 0.0;
#pragma omp simd reduction(+ : dp)
    for (int64_t d = 0; d < D; ++d) dp += load<A>(a.dout, out + d) * load<A>(a.v, k + d);
    const double p = std::exp(head.score(i, j) - load<S>(a.lse, head.lse(i)));
    const double dropped = head.dropped(i, j), ds = p * (dropped * dp - delta);
    double *const dk_row = dk + j * D, *const dv_row = dv + j * D;
#pragma omp simd
    for (int64_t d = 0; d < D; ++d) {
      dq[d] += ds * load<A>(a.k, k + d);
      dk_row[d] += ds * load<A>(a.q, q + d);
      dv_row[d] += p * dropped * load<A>(a.dout, out + d);
    }
  }
}

// All gradients of key/value head h_kv of sequence b; dk and dv are summed over its query heads.
template <class A, class S, class Gradient>
void backward_head(const AttentionBackward& a, int64_t b, int64_t h_kv) {
  const AttentionShape& s = a.shape;
  const bool adds = s.keys != KeyBlock::all;
  const auto put = [adds](void* at, int64_t e, double value) {
    store<Gradient>(at, e, adds ? load<Gradient>(at, e) + value : value);
  };
  const int64_t D = s.D, group = s.H / s.H_kv;
  double* const dq = scratch(D + 2 * s.T_k * D);
  double *const dk = dq + D, *const dv = dk + s.T_k * D;
  std::fill(dk, dv + s.T_k * D, 0.0);
  for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h)
    for (int64_t i = 0; i < s.T_q; ++i) {
      backward_query<A, S>({a, b, h}, i, dq, dk, dv);
      const int64_t row = b * a.dq_strides.step + i * a.dq_strides.row + h * D;
      for (int64_t d = 0; d < D; ++d) put(a.dq, row + d, s.scale * dq[d]);
    }
  for (int64_t j = 0; j < s.T_k; ++j) {
    const int64_t row = b * a.dkv_strides.step + j * a.dkv_strides.row + h_kv * D;
    for (int64_t d = 0; d < D; ++d) {
      put(a.dk, row + d, s.scale * dk[j * D + d]);
      put(a.dv, row + d, dv[j * D + d]);
    }
  }
}

}  // namespace

template <class A, class S>
void attention_forward(Queue&, const AttentionForward& a) {
  const auto of_query =
      a.shape.keys == KeyBlock::all ? forward_query<A, S, A> : forward_query<A, S, S>;
  for (int64_t b = 0; b < a.shape.B; ++b)
    for (int64_t h = 0; h < a.shape.H; ++h)
      for (int64_t i = 0; i < a.shape.T_q; ++i) of_query({a, b, h}, i);
}

template <class A, class S>
void attention_backward(Queue&, const AttentionBackward& a) {
  const auto of_head =
      a.shape.keys == KeyBlock::all ? backward_head<A, S, A> : backward_head<A, S, S>;
  for (int64_t b = 0; b < a.shape.B; ++b)
    for (int64_t h_kv = 0; h_kv < a.shape.H_kv; ++h_kv) of_head(a, b, h_kv);
}

GPTBENCH_ATTENTION_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace ref
}  // namespace gptbench
