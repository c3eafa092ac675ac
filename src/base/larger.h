#pragma once

#include <cmath>

namespace gptbench {

// The larger of two, and NaN where either is: std::max would drop a NaN, and a result that is none
// must not pass.
inline double larger(double a, double b) {
  return std::isnan(b) || b > a ? b : a;
}

}  // namespace gptbench
