// How far a difference between two runs can be noise.
#pragma once

#include <cmath>
#include <vector>

#include "record/record.h"

namespace gptbench {

// Bounds of the median of what a sample stands for, without an assumption about its distribution:
// the k-th smallest and the k-th largest value, k as large as makes them hold the median with a
// probability (`coverage`) of at least 95%. Under six values none does: the bounds are the least
// and the largest, and the coverage 1 - 2^(1-n). Values are taken as independent: a machine that
// drifts while it runs makes them too narrow.
struct MedianBounds {
  double least = 0.0, largest = 0.0;
  double coverage = 0.0;  // 0: fewer than two values, no bounds
};
MedianBounds median_bounds(std::vector<double> values);

// Bounds of median(b) / median(a) from those of both, and whether they leave 1 out. Where both
// samples come from one distribution, this is rarer than 1 in 100 for samples of one size, than 3
// in 100 for others; with a sample of fewer than six values, whose bounds have no 95%, it is not,
// and the bounds decide nothing.
struct RatioBounds {
  double least = 0.0, largest = 0.0;
  bool known = false, decide = false;
  bool beyond_noise() const { return known && decide && (least > 1.0 || largest < 1.0); }
  double middle() const { return std::sqrt(least * largest); }
};
RatioBounds ratio_bounds(const std::vector<double>& a, const std::vector<double>& b);

// Bounds of 99% of the ratio b / a of what two groups of runs stand for, one positive value per
// run: Welch's t-test on logarithms. A group of one run is taken to vary as the other does. Not
// known with fewer than three runs in total. 99%, since an acceptance test compares often, and each
// comparison asks twice: of all steps and of the fastest.
RatioBounds ratio_bounds_of_runs(const std::vector<double>& a, const std::vector<double>& b);

// Student's t within which, on both sides of 0, a share of `coverage` lies.
double student_t(double degrees_of_freedom, double coverage);

}  // namespace gptbench
