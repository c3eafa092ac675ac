// How exact matrix products are, for tests of any device.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernel_test.h"

namespace gptbench::test {

template <class A>
std::vector<A> absolute(std::vector<A> x) {
  for (A& v : x) assign(v, std::abs(value_of(v)));
  return x;
}

// A sum of `terms` products, in float in any order, is off by at most terms eps32 times the sum of
// magnitudes (Higham, section 3.1), and is rounded once to the type of the result; the reference
// computes that sum from absolute() factors.
template <class T>
void expect_sums(const std::vector<T>& x, const std::vector<T>& reference,
                 const std::vector<T>& magnitudes, int64_t terms, const char* what) {
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::abs(value_of(x[i]) - value_of(reference[i])),
              1.02 * static_cast<double>(terms + 2) * eps32 * value_of(magnitudes[i]) +
                  ulp_of<T>() * std::abs(value_of(reference[i])) + smallest_of<T>())
        << what << " element " << i;
}

}  // namespace gptbench::test
