#include <cmath>
#include <limits>

#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_map.h"
#include "device/host/simd_math.h"

namespace gptbench::host {
namespace {

// Logits may rise so far above an earlier maximum before their exponentials are taken anew: exp(60)
// times a chunk stays far below the largest float.
constexpr float highest_rise = 60.0f;
// Logits further below the maximum are clamped: exp(-69) keeps results out of the subnormal
// numbers, where processors are slow.
constexpr float lowest_fall = 69.0f;

constexpr float none = -std::numeric_limits<float>::infinity();

// Maximum of logits, and sum of exp(logit - base).
struct Part {
  float max, sum;
};
template <class A>
Part sum_chunk_of(const A* logits, int64_t count, float base) {
  constexpr int degree = sizeof(A) < sizeof(float) ? 4 : 5;
  constexpr int64_t step = simd::prefetch_elements<A>;
  constexpr int64_t lanes = simd::in_twos<A> ? step / 2 : step;
  const auto interval = simd::Interval::symmetric(lowest_fall);
  const auto exponential = [=](float logit) __attribute__((always_inline)) {
    const float fall = logit - base;
    const simd::Exponential e =
        simd::exp_by_powers_of_two<degree>(interval.lowest > fall ? interval.lowest : fall);
    return e.significand * e.power;
  };
  // As simd::sum_of() and max_of(), both in one pass.
  float max[lanes], sum[lanes] = {};
#pragma omp simd
  for (int64_t lane = 0; lane < lanes; ++lane) max[lane] = none;
  const int64_t whole = count / step * step;
  for (int64_t begin = 0; begin < whole; begin += step) {
    simd::prefetch_lines<0>(logits + begin, simd::prefetch_bytes);
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if constexpr (simd::in_twos<A>) {
        const simd::Two logit = simd::load_two(logits + begin + 2 * lane);
        max[lane] = simd::larger(logit.first, max[lane]);
        max[lane] = simd::larger(logit.second, max[lane]);
        sum[lane] += exponential(logit.first) + exponential(logit.second);
      } else {
        const float logit = simd::load(logits[begin + lane]);
        max[lane] = simd::larger(logit, max[lane]);
        sum[lane] += exponential(logit);
      }
    }
  }
  float largest = none, total = 0.0f;
#pragma omp simd reduction(max : largest) reduction(+ : total)
  for (int64_t lane = 0; lane < lanes; ++lane) {
    largest = simd::larger(max[lane], largest);
    total += sum[lane];
  }
#pragma omp simd reduction(max : largest) reduction(+ : total)
  for (int64_t j = whole; j < count; ++j) {
    const float logit = simd::load(logits[j]);
    largest = simd::larger(logit, largest);
    total += exponential(logit);
  }
  return {largest, total};
}

}  // namespace

template <class A>
void cross_entropy_statistics(Queue&, const CrossEntropyStatistics& a) {
  float* const row_max = static_cast<float*>(a.row_max);
  float* const row_sum = static_cast<float*>(a.row_sum);
  float* const target_logit = static_cast<float*>(a.target_logit);
  const A* const logits = static_cast<const A*>(a.logits);
  const int32_t* const targets = a.targets;
  const int64_t V_tp = a.V_tp, V_valid = a.V_valid, first_token = a.first_token;
  parallel("gptbench::cross_entropy_statistics", a.R, [=](int64_t r) {
    // One pass: exponentials are taken relative to an earlier maximum, and again where a chunk
    // rises so far above it that they may leave the range of float.
    const A* const row = logits + r * V_tp;
    float largest = none;
    float base = largest;
    double sum = 0.0;
    for (int64_t first = 0; first < V_valid; first += loss_chunk) {
      const A* const chunk = row + first;
      const int64_t count = std::min(loss_chunk, V_valid - first);
      if (first == 0) base = simd::max_of(count, [=](int64_t j) { return simd::load(chunk[j]); });
      Part part = sum_chunk_of(chunk, count, base);
      largest = simd::larger(part.max, largest);
      if (largest > base + highest_rise) {
        sum *= std::exp(static_cast<double>(base) - static_cast<double>(largest));
        base = largest;
        part = sum_chunk_of(chunk, count, base);
      }
      sum += static_cast<double>(part.sum);
    }
    // A share may hold padding of the vocabulary alone; its maximum is then -infinity.
    if (V_valid > 0) sum *= std::exp(static_cast<double>(base) - static_cast<double>(largest));
    const int64_t target = targets[r] - first_token;
    const bool mine = target >= 0 && target < V_valid;
    row_max[r] = largest;
    row_sum[r] = static_cast<float>(sum);
    target_logit[r] = mine ? simd::load(row[target]) : 0.0f;
  });
}

template <class A>
void cross_entropy_combine(Queue&, const CrossEntropyCombine& a) {
  float* const row_max = static_cast<float*>(a.row_max);
  float* const row_sum = static_cast<float*>(a.row_sum);
  float* const target_logit = static_cast<float*>(a.target_logit);
  const float* const parts = static_cast<const float*>(a.parts);
  const int64_t num_parts = a.num_parts, array = a.array, part = a.part;
  parallel("gptbench::cross_entropy_combine", a.R, [=](int64_t r) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t p = 0; p < num_parts; ++p) largest = std::max(largest, parts[p * part + r]);
    double sum = 0.0;
    float target = 0.0f;
    for (int64_t p = 0; p < num_parts; ++p) {
      const float* const from = parts + p * part;
      sum += static_cast<double>(from[array + r]) *
             std::exp(static_cast<double>(from[r]) - static_cast<double>(largest));
      target += from[2 * array + r];
    }
    row_max[r] = largest;
    row_sum[r] = static_cast<float>(sum);
    target_logit[r] = target;
  });
}

template <class A>
void cross_entropy_finish(Queue&, const CrossEntropyFinish& a) {
  A* const logits = static_cast<A*>(a.logits);
  const float* const row_max = static_cast<const float*>(a.row_max);
  const float* const row_sum = static_cast<const float*>(a.row_sum);
  const float* const target_logit = static_cast<const float*>(a.target_logit);
  const int32_t* const targets = a.targets;
  const int64_t V_tp = a.V_tp, V_valid = a.V_valid, first_token = a.first_token;
  const double dscale = a.dscale * (a.loss_scale != nullptr ? a.loss_scale[0] : 1.0) *
                        (a.row_weight != nullptr ? a.row_weight[0] : 1.0);
  for (int64_t r = 0; r < a.R; ++r)
    if (targets[r] >= 0)
      a.loss_sum[0] += std::log(static_cast<double>(row_sum[r])) + static_cast<double>(row_max[r]) -
                       static_cast<double>(target_logit[r]);
  parallel("gptbench::cross_entropy_finish", a.R, [=](int64_t r) {
    A* const row = logits + r * V_tp;
    if (targets[r] < 0) {
#pragma omp simd
      for (int64_t j = 0; j < V_tp; ++j) simd::store(row[j], 0.0f);
      return;
    }
    const float max = row_max[r], lowest = max - lowest_fall;
    const float factor = static_cast<float>(dscale / static_cast<double>(row_sum[r]));
    const int64_t target = targets[r] - first_token;
    const bool mine = target >= 0 && target < V_valid;
    const float at_target =
        mine ? simd::exp(simd::load(row[target]) - max) * factor - static_cast<float>(dscale)
             : 0.0f;
    constexpr int degree = simd::accuracy_of<A>() == simd::Accuracy::bf16 ? 3 : 5;
    const auto gradient = [=](float logit) __attribute__((always_inline)) {
      const simd::Exponential e =
          simd::exp_by_powers_of_two<degree>((lowest > logit ? lowest : logit) - max);
      return e.significand * factor * e.power;
    };
    simd::map<simd::Ties::away>(row, V_valid, gradient, row);
#pragma omp simd
    for (int64_t j = V_valid; j < V_tp; ++j) simd::store(row[j], 0.0f);
    if (mine) simd::store(row[target], at_target);
  });
}

template <class A>
void cross_entropy(Queue& queue, const CrossEntropy& a) {
  cross_entropy_statistics<A>(queue, a.statistics);
  cross_entropy_finish<A>(queue, a.finish);
}

GPTBENCH_LOSS_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
