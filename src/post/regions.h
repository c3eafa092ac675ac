// Times by region, out of [step, rank] series.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/record.h"

namespace gptbench {

struct RegionTime {
  std::string name;
  double time_s = 0.0;  // mean over the timed steps
};

struct Breakdown {
  int64_t rank = -1;    // the slowest; -1: the file holds reductions, times are maxima over ranks
  double step_s = 0.0;  // region "step"; without one, the median of the slowest rank's steps
  std::vector<RegionTime> regions;
};

// The timed steps (record/steps.h) of one rank's (or one reduction's) column; all steps where none
// was timed.
std::vector<double> timed_steps(const Record& record, const RankSeries& series, int64_t column);

// Mean over these steps: means of the parts of a step add up to the mean step, medians do not.
double mean_time_s(const Record& record, const RankSeries& series, int64_t column);

// The rank whose steps take the longest (region "step"; without one, all regions together).
Breakdown slowest_rank(const Record& record);

}  // namespace gptbench
