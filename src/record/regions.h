// Times by kind of work, out of [step, rank] series.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/record.h"

namespace gptbench {

// Series of /timing that tell of one kind of work have its name behind this.
constexpr const char* region_prefix = "region_";
bool is_region(const RankSeries& series);
// The kind of work; the name of another series.
std::string region_of(const RankSeries& series);

struct RegionTime {
  std::string name;
  double time_s = 0.0;  // mean over the timed steps
};

// [rank]: median over the timed steps of step less communication, s; beside reduced series what the
// record keeps of it. Empty where the record lacks them.
std::vector<double> computing_times(const Record& record);

struct Breakdown {
  int64_t rank = -1;    // the slowest; -1: the file holds reductions, times are maxima over ranks
  double step_s = 0.0;  // region "step"; without one, the median of the slowest rank's steps
  std::vector<RegionTime> regions;
};

// The timed steps (record/steps.h) of one rank's (or one reduction's) column.
std::vector<double> timed_steps(const Record& record, const RankSeries& series, int64_t column);

// Mean over these steps: means of the parts of a step add up to the mean step, medians do not.
double mean_time_s(const Record& record, const RankSeries& series, int64_t column);

// The rank whose steps take the longest (region "step"; without one, all regions together). No
// regions where no step was timed.
Breakdown slowest_rank(const Record& record);

}  // namespace gptbench
