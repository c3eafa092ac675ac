// How long a step takes on a machine that is not there: the plan's own operations, walked with the
// clocks of a machine profile and a software profile. No MPI, no device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "deck/deck.h"
#include "plan/stage_figures.h"
#include "project/profile.h"
#include "project/work.h"

namespace gptbench {

// What a step is, apart from how fast a machine is. [stage]: one rank of each pipeline stage, of
// those that hold the largest share of the batch.
struct StepWork {
  Plan plan;  // of rank 0
  std::vector<StageFigures> stages;
  // A step of many micro-batches is walked with `walked` and with `fewer` of them; from there on
  // its time is linear in their number. `less` is empty where all are walked.
  std::vector<RankWork> full, less;
  double micro_batches = 1.0, walked = 1.0, fewer = 1.0;
};
// The deck on `ranks` ranks of the machine. Throws Error(Exit::usage) where they do not go
// together.
StepWork step_work(const Deck& deck, int64_t ranks, const Machine& machine,
                   const Software& software);

// Seconds of a step, and what they are: of the stage that computes longest.
struct StepTime {
  double sec_per_it = 0.0;
  double computing_s = 0.0;
  double exposed_s = 0.0;                      // computing waits for collectives and copies
  double bubble_s = 0.0;                       // computing waits for another stage
  double straggler_s = 0.0;                    // the slowest of all ranks, over their mean
  double step_s = 0.0;                         // Software::step_ms
  std::array<double, num_regions> region_s{};  // of computing_s
};
StepTime step_time(const StepWork& work, const Machine& machine, const Software& software);

struct Projection {
  StepTime time;
  double low_s = 0.0, high_s = 0.0;  // 80 % of measured steps lie between
  double tokens_per_s = 0.0, mfu = 0.0, hfu = 0.0, peak_flops = 0.0;
  // Memory of the device with the highest need; reserve_bytes, for context and libraries, is on
  // top.
  double memory_bytes = 0.0, reserve_bytes = 0.0, limit_bytes = 0.0;
  bool fits() const { return memory_bytes + reserve_bytes <= limit_bytes; }
};
Projection project(const StepWork& work, const Machine& machine, const Software& software);

// The projection in 80 columns, node-hours and MWh for `tokens` where these are not 0, and as last
// line "GPTBENCH projection sec_per_it=... low=... high=... tokens_per_s=... mfu=...
// memory_bytes=... fits=yes|no machine=... software=...".
std::string projection_text(const StepWork& work, const Projection& projection,
                            const Machine& machine, const Software& software, double tokens);

// Expected largest of n independent standard normal numbers: 0 of one, 0.564 of two, 1.423 of 8.
double expected_largest(double n);

}  // namespace gptbench
