// Times by region, out of [step, rank] series.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/record.h"

namespace gptbench {

struct RegionTime {
  std::string name;
  double time_s = 0.0;  // median over the timed steps
};

struct Breakdown {
  int64_t rank = -1;  // the slowest; -1: the file holds reductions, times are maxima over ranks
  std::vector<RegionTime> regions;
};

// The timed steps (record/steps.h) of one rank's (or one reduction's) column; all steps where none
// was timed.
std::vector<double> timed_steps(const Record& record, const RankSeries& series, int64_t column);

// The rank whose steps take the longest (region "step"; without one, all regions together), medians
// over the timed steps.
Breakdown slowest_rank(const Record& record);

}  // namespace gptbench
