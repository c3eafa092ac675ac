#include <algorithm>
#include <cmath>
#include <limits>

#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void cross_entropy_statistics(Queue&, const CrossEntropyStatistics& a) {
  for (int64_t r = 0; r < a.R; ++r) {
    double row_max = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < a.V_valid; ++j)
      row_max = std::max(row_max, load<A>(a.logits, r * a.V_tp + j));
    double row_sum = 0.0;
    for (int64_t j = 0; j < a.V_valid; ++j)
      row_sum += std::exp(load<A>(a.logits, r * a.V_tp + j) - row_max);
    const int64_t target = a.targets[r] - a.first_token;
    const bool mine = target >= 0 && target < a.V_valid;
    store<S>(a.row_max, r, row_max);
    store<S>(a.row_sum, r, row_sum);
    store<S>(a.target_logit, r, mine ? load<A>(a.logits, r * a.V_tp + target) : 0.0);
  }
}

template <class A, class S>
void cross_entropy_combine(Queue&, const CrossEntropyCombine& a) {
  const auto at = [&](int64_t p, int64_t array, int64_t r) {
    return load<S>(a.parts, p * a.part + array * a.array + r);
  };
  for (int64_t r = 0; r < a.R; ++r) {
    double row_max = -std::numeric_limits<double>::infinity();
    for (int64_t p = 0; p < a.num_parts; ++p) row_max = std::max(row_max, at(p, 0, r));
    double row_sum = 0.0, target_logit = 0.0;
    for (int64_t p = 0; p < a.num_parts; ++p) {
      row_sum += at(p, 1, r) * std::exp(at(p, 0, r) - row_max);
      target_logit += at(p, 2, r);
    }
    store<S>(a.row_max, r, row_max);
    store<S>(a.row_sum, r, row_sum);
    store<S>(a.target_logit, r, target_logit);
  }
}

template <class A, class S>
void cross_entropy_finish(Queue&, const CrossEntropyFinish& a) {
  const double dscale = a.dscale * (a.loss_scale != nullptr ? a.loss_scale[0] : 1.0) *
                        (a.row_weight != nullptr ? a.row_weight[0] : 1.0);
  for (int64_t r = 0; r < a.R; ++r) {
    const double row_max = load<S>(a.row_max, r);
    const double row_sum = load<S>(a.row_sum, r);
    const bool counts = a.targets[r] >= 0;
    if (counts) a.loss_sum[0] += std::log(row_sum) + row_max - load<S>(a.target_logit, r);
    for (int64_t j = 0; j < a.V_tp; ++j) {
      double dlogit = 0.0;
      if (counts && j < a.V_valid) {
        const double p = std::exp(load<A>(a.logits, r * a.V_tp + j) - row_max) / row_sum;
        dlogit = dscale * (p - (j == a.targets[r] - a.first_token ? 1.0 : 0.0));
      }
      store<A>(a.logits, r * a.V_tp + j, dlogit);
    }
  }
}

template <class A, class S>
void cross_entropy(Queue& queue, const CrossEntropy& a) {
  cross_entropy_statistics<A, S>(queue, a.statistics);
  cross_entropy_finish<A, S>(queue, a.finish);
}

GPTBENCH_LOSS_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
