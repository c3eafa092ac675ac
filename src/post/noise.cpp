#include "post/noise.h"

#include <algorithm>
#include <cmath>

#include "record/steps.h"

namespace gptbench {
namespace {

constexpr double wanted_coverage = 0.95;

// P(X = k) of n throws of a coin.
double heads(size_t k, size_t n) {
  const double x = static_cast<double>(k), trials = static_cast<double>(n);
  return std::exp(std::lgamma(trials + 1.0) - std::lgamma(x + 1.0) - std::lgamma(trials - x + 1.0) -
                  trials * std::log(2.0));
}

}  // namespace

MedianBounds median_bounds(std::vector<double> values) {
  const size_t n = values.size();
  if (n < 2) return {};
  std::sort(values.begin(), values.end());
  // With the k smallest and the k largest left out, the median lies below the bounds with the
  // probability that at most k of n values lie below it; above them likewise.
  size_t left_out = 0;
  double below = heads(0, n);
  while (2 * (left_out + 1) < n) {
    const double next = below + heads(left_out + 1, n);
    if (1.0 - 2.0 * next < wanted_coverage) break;
    below = next;
    ++left_out;
  }
  return {values[left_out], values[n - 1 - left_out], 1.0 - 2.0 * below};
}

RatioBounds ratio_bounds(const std::vector<double>& a, const std::vector<double>& b) {
  const MedianBounds of_a = median_bounds(a), of_b = median_bounds(b);
  if (of_a.coverage == 0.0 || of_b.coverage == 0.0 || of_a.least <= 0.0 || of_b.least <= 0.0)
    return {};
  return {of_b.least / of_a.largest, of_b.largest / of_a.least, true};
}

}  // namespace gptbench
