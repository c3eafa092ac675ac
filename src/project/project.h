// How long a step takes on a machine that is not there: the plan's own operations, walked with the
// clocks of a machine profile and a software profile. No MPI, no device.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "deck/deck.h"
#include "plan/stage_figures.h"
#include "project/least_time.h"
#include "project/profile.h"
#include "project/timeline.h"
#include "project/work.h"

namespace gptbench {

// Work of a step, independent of the speed of a machine. [stage]: one rank of each pipeline stage,
// of those that hold the largest share of the batch.
struct StepWork {
  std::vector<RankWork> stages;
  std::vector<StageFigures> figures;
  StepBatches batches;

  const Plan& plan() const { return stages.front().plan; }  // of rank 0
};
// The deck on `ranks` ranks of the machine. Throws Error(Exit::usage) where they do not go
// together.
StepWork step_work(const Deck& deck, int64_t ranks, const Machine& machine,
                   const Software& software);
// The deck as it is planned: resolved, for a device and libraries as the machine and the software
// have them. Throws as step_work() does.
struct PlannedRun {
  Config config;
  DeviceTraits traits;
};
PlannedRun planned_run(const Deck& deck, int64_t ranks, const Machine& machine,
                       const Software& software);
// `fuses`: of the software.
DeviceTraits projected_traits(DeviceKind device, bool fuses);
// What a reader must know where the deck wants GPUs whose messages MPI passes; "": it does not.
std::string library_remark(const Deck& deck, const Machine& machine);
// In two parts: plans of one rank of each stage, which is enough for memory; then their work.
std::vector<Plan> stage_plans(const Deck& deck, int64_t ranks, const Machine& machine,
                              const Software& software);
// Plans of stages that differ, without waits, which is enough for memory_need() and least_step_s()
// and far cheaper.
std::vector<Plan> unlike_stages(const Deck& deck, int64_t ranks, const Machine& machine,
                                const Software& software);
StepWork step_work(std::vector<Plan> stages);

// Seconds of a step, and what they are: of the stage that computes longest.
struct StepTime {
  double sec_per_it = 0.0;
  double computing_s = 0.0;
  double exposed_s = 0.0;                      // computing waits for messages, or loses to them
  double bubble_s = 0.0;                       // computing waits for another stage
  double straggler_s = 0.0;                    // the slowest of all ranks, over their mean
  double overhead_s = 0.0;                     // Software::step_ms
  std::array<double, num_regions> region_s{};  // of computing_s
};
StepTime step_time(const StepWork& work, const Machine& machine, const Software& software);

// No step of these stages is shorter (in seconds, exactly): what the one with the most work
// computes, with stragglers and Software::step_ms. Far cheaper than step_time().
double least_step_s(const std::vector<Plan>& stages, const Machine& machine,
                    const Software& software);
// The same of a step of `ranks` ranks whose walk takes at least so long.
double least_step_s(const LeastTime& least, int64_t ranks, const Machine& machine,
                    const Software& software);

// The step as it was walked, on lanes by stage with LaneTime::spans.
struct StepTimeline {
  std::vector<Lane> lanes;
  std::vector<LaneTime> times;
};
StepTimeline step_timeline(const StepWork& work, const Machine& machine, const Software& software);

// Memory of the device with the highest need, of the processor where ranks compute on it;
// reserve_bytes, for context and libraries, is on top. host_bytes: what a rank offloads from a
// device; host_limit_bytes: its share of the node's host, 0: not known. planned_bytes: of
// memory_bytes, what the plan holds; the software adds the rest.
struct MemoryNeed {
  double memory_bytes = 0.0, reserve_bytes = 0.0, limit_bytes = 0.0;
  double host_bytes = 0.0, host_limit_bytes = 0.0;
  double planned_bytes = 0.0;
  size_t largest = 0;  // index of the figures with the highest need
  bool fits() const {
    return memory_bytes + reserve_bytes <= limit_bytes &&
           (host_limit_bytes == 0.0 || host_bytes <= host_limit_bytes);
  }
};
// `figures` by stage, of all or of unlike_stages(); `plan` of the first.
MemoryNeed memory_need(const Plan& plan, const std::vector<StageFigures>& figures,
                       const Machine& machine, const Software& software);
// The same of micro-batches of `rows` rows, whatever those of the plan are.
MemoryNeed memory_need(const Plan& plan, int64_t rows, const std::vector<StageFigures>& figures,
                       const Machine& machine, const Software& software);

struct Projection : MemoryNeed {
  StepTime time;
  double low_s = 0.0, high_s = 0.0;  // 80 % of measured steps lie between
  double tokens_per_s = 0.0, mfu = 0.0, hfu = 0.0, peak_flops = 0.0;
  std::string peak_note;    // a line where the deck states another peak than the machine's; or ""
  std::string mfu_warning;  // where MFU or HFU is above 100 %; or ""
  std::string notes() const {
    return peak_note + (peak_note.empty() || mfu_warning.empty() ? "" : "; ") + mfu_warning;
  }
};
Projection project(const StepWork& work, const Machine& machine, const Software& software);

// Expected largest of n independent standard normal numbers: 0 of one, 0.564 of two, 1.423 of 8.
double expected_largest(double n);

}  // namespace gptbench
