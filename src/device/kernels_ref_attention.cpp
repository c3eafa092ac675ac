#include <algorithm>
#include <cmath>
#include <limits>

#include "device/dropout.h"
#include "device/kernels_ref.h"

namespace gptbench::ref {
namespace {

constexpr int64_t chunk = 128;  // elements of D summed at a time, so that nothing is allocated

// One (b, h) of an attention call: where its elements lie. `Arguments` is either direction's.
template <class A, class S, class Arguments>
struct Head {
  const Arguments& a;
  int64_t b, h;

  int64_t h_kv() const { return h / (a.H / a.H_kv); }
  int64_t q(int64_t i) const { return (b * a.T + i) * a.q_row + h * a.D; }
  int64_t k(int64_t j) const { return (b * a.T + j) * a.kv_row + h_kv() * a.D; }
  int64_t out(int64_t i) const { return (b * a.T + i) * a.out_row + h * a.D; }
  int64_t lse(int64_t i) const { return (b * a.H + h) * a.T + i; }
  int64_t columns(int64_t i) const { return a.causal ? i + 1 : a.T; }

  double score(int64_t i, int64_t j) const {
    double sum = 0.0;
    for (int64_t d = 0; d < a.D; ++d) sum += load<A>(a.q, q(i) + d) * load<A>(a.k, k(j) + d);
    return a.scale * sum;
  }
  double dropped(int64_t i, int64_t j) const {
    const int64_t head = (a.first_sequence + b) * a.H_global + a.first_head + h;
    return dropout_factor(a.dropout, (head * a.T + i) * a.T + j);
  }
};

}  // namespace

template <class A, class S>
void attention_forward(Queue&, const AttentionForward& a) {
  for (int64_t b = 0; b < a.B; ++b)
    for (int64_t h = 0; h < a.H; ++h) {
      const Head<A, S, AttentionForward> head{a, b, h};
      for (int64_t i = 0; i < a.T; ++i) {
        double row_max = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < head.columns(i); ++j) row_max = std::max(row_max, head.score(i, j));
        double row_sum = 0.0;
        for (int64_t j = 0; j < head.columns(i); ++j)
          row_sum += std::exp(head.score(i, j) - row_max);
        const double lse = row_max + std::log(row_sum);
        store<S>(a.lse, head.lse(i), lse);
        for (int64_t d0 = 0; d0 < a.D; d0 += chunk) {
          const int64_t width = std::min(chunk, a.D - d0);
          double sum[chunk] = {};
          for (int64_t j = 0; j < head.columns(i); ++j) {
            const double p = std::exp(head.score(i, j) - lse) * head.dropped(i, j);
            for (int64_t d = 0; d < width; ++d) sum[d] += p * load<A>(a.v, head.k(j) + d0 + d);
          }
          for (int64_t d = 0; d < width; ++d) store<A>(a.out, head.out(i) + d0 + d, sum[d]);
        }
      }
    }
}

// With P the probabilities, Z their dropout factors and delta_i = dout_i . out_i:
//   dv_j = sum_i P_ij Z_ij dout_i,   dS_ij = P_ij (Z_ij dout_i . v_j - delta_i),
//   dq_i = scale sum_j dS_ij k_j,    dk_j = scale sum_i dS_ij q_i,
// dk and dv summed over the query heads that share j's head.
template <class A, class S>
void attention_backward(Queue&, const AttentionBackward& a) {
  using H = Head<A, S, AttentionBackward>;
  const auto probability = [&a](const H& head, int64_t i, int64_t j) {
    return std::exp(head.score(i, j) - load<S>(a.lse, head.lse(i)));
  };
  const auto dscore = [&](const H& head, int64_t i, int64_t j) {
    double delta = 0.0;
    double dp = 0.0;
    for (int64_t d = 0; d < a.D; ++d) {
      const double dout = load<A>(a.dout, head.out(i) + d);
      delta += dout * load<A>(a.out, head.out(i) + d);
      dp += dout * load<A>(a.v, head.k(j) + d);
    }
    return probability(head, i, j) * (head.dropped(i, j) * dp - delta);
  };

  const int64_t group = a.H / a.H_kv;
  for (int64_t b = 0; b < a.B; ++b)
    for (int64_t d0 = 0; d0 < a.D; d0 += chunk) {
      const int64_t width = std::min(chunk, a.D - d0);
      for (int64_t h = 0; h < a.H; ++h) {
        const H head{a, b, h};
        for (int64_t i = 0; i < a.T; ++i) {
          double dq[chunk] = {};
          for (int64_t j = 0; j < head.columns(i); ++j) {
            const double ds = dscore(head, i, j);
            for (int64_t d = 0; d < width; ++d) dq[d] += ds * load<A>(a.k, head.k(j) + d0 + d);
          }
          const int64_t row = (b * a.T + i) * a.dq_row + h * a.D + d0;
          for (int64_t d = 0; d < width; ++d) store<A>(a.dq, row + d, a.scale * dq[d]);
        }
      }
      for (int64_t h_kv = 0; h_kv < a.H_kv; ++h_kv)
        for (int64_t j = 0; j < a.T; ++j) {
          double dk[chunk] = {};
          double dv[chunk] = {};
          for (int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
            const H head{a, b, h};
            for (int64_t i = a.causal ? j : 0; i < a.T; ++i) {
              const double ds = dscore(head, i, j);
              const double p = probability(head, i, j) * head.dropped(i, j);
              for (int64_t d = 0; d < width; ++d) {
                dk[d] += ds * load<A>(a.q, head.q(i) + d0 + d);
                dv[d] += p * load<A>(a.dout, head.out(i) + d0 + d);
              }
            }
          }
          const int64_t row = (b * a.T + j) * a.dkv_row + h_kv * a.D + d0;
          for (int64_t d = 0; d < width; ++d) {
            store<A>(a.dk, row + d, a.scale * dk[d]);
            store<A>(a.dv, row + d, dv[d]);
          }
        }
    }
}

}  // namespace gptbench::ref

namespace gptbench {
GPTBENCH_REF_KERNEL(attention_forward, AttentionForward);
GPTBENCH_REF_KERNEL(attention_backward, AttentionBackward);
}  // namespace gptbench
