#include "post/noise.h"

#include <algorithm>
#include <cmath>

#include "base/sort_numbers.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr double target_coverage = 0.95, target_coverage_of_runs = 0.99;

// P(X = k) of n throws of a coin.
double heads(size_t k, size_t n) {
  const double x = static_cast<double>(k), trials = static_cast<double>(n);
  return std::exp(std::lgamma(trials + 1.0) - std::lgamma(x + 1.0) - std::lgamma(trials - x + 1.0) -
                  trials * std::log(2.0));
}

// Mean and variance of the logarithms; the variance needs two values.
struct LogMoments {
  double count = 0.0, mean = 0.0, variance = 0.0;
};

LogMoments log_moments(const std::vector<double>& values) {
  LogMoments m;
  m.count = static_cast<double>(values.size());
  for (const double value : values) m.mean += std::log(value) / m.count;
  for (const double value : values)
    m.variance += std::pow(std::log(value) - m.mean, 2.0) / std::max(1.0, m.count - 1.0);
  return m;
}

// Integral of cos^(df - 1) from 0 to `angle`, by Simpson's rule.
double power_of_cosine(double angle, double df) {
  constexpr int intervals = 100;
  double sum = 0.0;
  for (int i = 0; i <= intervals; ++i) {
    const double weight = i == 0 || i == intervals ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
    sum += weight * std::pow(std::cos(angle * i / intervals), df - 1.0);
  }
  return sum * angle / (3.0 * intervals);
}

}  // namespace

// With t = sqrt(df) tan(angle) the density of t becomes that power of the cosine.
double student_t(double df, double coverage) {
  // Beyond ten standard deviations nothing is left.
  const double end = std::min(1.5707963267948966, 10.0 / std::sqrt(df));
  const double wanted = coverage * power_of_cosine(end, df);
  // Newton's method from 0: the integral is concave, so that each step stays below the root.
  double angle = 0.0;
  for (double step = 1.0; step > 1e-12;) {
    step = (wanted - power_of_cosine(angle, df)) / std::pow(std::cos(angle), df - 1.0);
    angle += step;
  }
  return std::sqrt(df) * std::tan(angle);
}

RatioBounds ratio_bounds_of_runs(const std::vector<double>& a, const std::vector<double>& b) {
  const auto is_positive = [](double value) { return value > 0.0 && std::isfinite(value); };
  if (a.empty() || b.empty() || a.size() + b.size() < 3 ||
      !std::all_of(a.begin(), a.end(), is_positive) ||
      !std::all_of(b.begin(), b.end(), is_positive))
    return {};
  LogMoments of_a = log_moments(a), of_b = log_moments(b);
  if (a.size() == 1) of_a.variance = of_b.variance;
  if (b.size() == 1) of_b.variance = of_a.variance;
  // Welch and Satterthwaite: degrees of freedom of the sum of two estimated variances. A single
  // run estimates none.
  const double part_a = of_a.variance / of_a.count, part_b = of_b.variance / of_b.count;
  double df = std::max(of_a.count, of_b.count) - 1.0;
  if (a.size() > 1 && b.size() > 1 && part_a + part_b > 0.0)
    df = std::pow(part_a + part_b, 2.0) /
         (part_a * part_a / (of_a.count - 1.0) + part_b * part_b / (of_b.count - 1.0));
  const double half = student_t(df, target_coverage_of_runs) * std::sqrt(part_a + part_b);
  const double ratio = of_b.mean - of_a.mean;
  return {std::exp(ratio - half), std::exp(ratio + half), true, true};
}

MedianBounds median_bounds(std::vector<double> values) {
  const size_t n = values.size();
  if (n < 2) return {};
  sort_numbers(values);
  // With the k smallest and the k largest left out, the median lies below the bounds with the
  // probability that at most k of n values lie below it; above them likewise.
  size_t left_out = 0;
  double below = heads(0, n);
  while (2 * (left_out + 1) < n) {
    const double next = below + heads(left_out + 1, n);
    if (1.0 - 2.0 * next < target_coverage) break;
    below = next;
    ++left_out;
  }
  return {values[left_out], values[n - 1 - left_out], 1.0 - 2.0 * below};
}

RatioBounds ratio_bounds(const std::vector<double>& a, const std::vector<double>& b) {
  const MedianBounds of_a = median_bounds(a), of_b = median_bounds(b);
  if (of_a.coverage == 0.0 || of_b.coverage == 0.0 || of_a.least <= 0.0 || of_b.least <= 0.0)
    return {};
  return {of_b.least / of_a.largest, of_b.largest / of_a.least, true,
          std::min(of_a.coverage, of_b.coverage) >= target_coverage};
}

}  // namespace gptbench
