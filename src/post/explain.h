// Where the time of a step goes, and why it could not be less: what was measured beside what the
// plan of the same deck does and moves, over rates that this machine reaches.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "post/trace.h"
#include "project/profile.h"
#include "record/record.h"

namespace gptbench {

// Rates of one rank; 0: not known.
struct Ceilings {
  double flops_per_s = 0.0, fp8_flops_per_s = 0.0;  // of GEMMs, and of those in fp8
  double bytes_per_s = 0.0;                         // of memory
  double host_bytes_per_s = 0.0;                    // of the host's memory, for kernels there
  double copy_bytes_per_s = 0.0;                    // of a copy between device and host
  double launch_s = 0.0;                            // per operation on the device
  std::string source;                               // for the page
};
// Those of a profile, for the types of the record, none of copies to a file; without one those that
// the record holds: its GEMM ceiling or peak, and the bandwidth of a known accelerator. In fp8 runs
// GEMMs in bf16 have the peak that a known device has for them.
Ceilings ceilings_of(const Record& record, const std::optional<Machine>& machine);

// Part of a step, per rank: means over ranks and over the half of the timed steps that is nearest
// to their median, in seconds.
struct PartOfStep {
  std::string name;
  double time_s = 0.0;
  double flops = 0.0, bytes = 0.0, calls = 0.0;  // per rank and step, by the plan
  double limit_s = 0.0;                          // what it takes at the ceilings; 0: not known
  bool bound_by_flops = false;                   // of most of the limit; else by bytes
  double launch_s = 0.0;
  // What operations of these shapes take beside both by the profile: tiles and vectors that are not
  // full, measured factors of shapes, factors of the software. 0: no profile.
  double shape_s = 0.0;
  double known_s() const { return limit_s + launch_s + shape_s; }
  // What none of them explains; 0 where it is no more than rounding.
  double rest_s() const {
    const double rest = time_s - known_s();
    return std::fabs(rest) < 1e-9 * time_s ? 0.0 : rest;
  }
};

// An operation of one size. Its time is its share of the region's, by its time in the trace of the
// run, without one by what the profile projects for it, without a profile by its limit.
struct OperationTime : PartOfStep {
  std::string region;
};

// Messages of one kind along one axis, per rank and step.
struct MessageTime {
  std::string axis, op;
  double bytes = 0.0, time_s = 0.0, exposed_s = 0.0;
  double bus_bytes_per_s = 0.0;  // as nccl-tests define it; 0: one rank, or no time
  double limit_s = 0.0;          // by the links of the profile; 0: no profile
};

// A rank that in most steps (slow_share of them), or in its fastest tenth of steps, computes
// slow_factor times as long as the median of the ranks with equal work, those of its pipeline stage
// with an equal share of the batch; of an even number of ranks the lower one. A disturbance of the
// other ranks hides the first, hardly the second. Medians over steps. Where the file has reduced
// series and beside them only the median of each rank (Record::rank_computing_s), a rank whose
// median is so much above that of the others.
struct SlowRank {
  int64_t rank = 0;
  std::string host;
  double computing_s = 0.0, median_s = 0.0;
  size_t slow_steps = 0, steps = 0;  // steps 0: the file has only medians
  double fastest_ratio = 0.0;        // of its fastest tenth to the median rank's; ditto
};
constexpr double slow_factor = 1.1, slow_share = 2.0 / 3.0, fastest_share = 0.1;

struct StepAccount {
  double step_s = 0.0;                    // as its parts
  bool reduced = false;                   // times are medians over ranks, which do not add up
  bool projected = false;                 // times are of the stage that computes longest
  bool traced = false;                    // shares of operations are those of a trace
  std::vector<PartOfStep> regions;        // of computing, longest first
  std::vector<OperationTime> operations;  // most time lost first
  std::vector<MessageTime> messages;
  // Time in communication, and two parts of it. imbalance_s: ranks wait because others compute
  // longer, the longest computing time less the mean. bubble_s: of the rest, waits for pipeline
  // messages (of a projection for other stages).
  double communication_s = 0.0, imbalance_s = 0.0, bubble_s = 0.0;
  bool names_ranks = false;    // the file has figures of each rank, and some have equal work
  bool ranks_unknown = false;  // the file lacks figures of each rank
  std::vector<SlowRank> slow;

  double messages_s() const { return communication_s - imbalance_s - bubble_s; }
  double unexplained_s() const;  // in no region: gaps between operations
  // Share of the step in regions and communication, whatever it is spent on there.
  double explained() const { return 1.0 - unexplained_s() / step_s; }
  // Communication, and of each region what limits, launches and shapes take: what has a cause. The
  // rest of regions and the gaps have none.
  double covered_s() const;
  double covered() const { return covered_s() / step_s; }
};

// Throws Error(Exit::usage) where the record has no timed step, or its deck makes no plan. `trace`:
// of a measured run; that of a projection has all stages, the account the longest.
StepAccount account_of(const Record& record, const std::optional<Machine>& machine,
                       const Software& software, const TraceFile& trace = {});

// The page of `explain`: 80 columns. `profile`: name or path of a machine profile, "" for none; a
// path names that of the software too.
std::string explain_page(const std::string& path, const Record& record, const std::string& profile);
// The same as one JSON object, with every operation and every digit; times in seconds per step.
std::string explain_json(const std::string& path, const Record& record, const std::string& profile);

}  // namespace gptbench
