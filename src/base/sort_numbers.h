// Sorting of numbers that come from a file.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace gptbench {

// Ascending, what is not a number last. std::sort() leaves its range where comparisons are no
// order, as those with a NaN are not.
inline void sort_numbers(std::vector<double>& values) {
  const auto numbers_end =
      std::partition(values.begin(), values.end(), [](double value) { return !std::isnan(value); });
  std::sort(values.begin(), numbers_end);
}

// For comparisons of another sort.
inline double number_or_least(double value) {
  return std::isnan(value) ? -INFINITY : value;
}

}  // namespace gptbench
