// The record of a run, assembled from what its phases return: the only place that fills one in.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "deck/deck.h"
#include "plan/stage_figures.h"
#include "record/record.h"
#include "run/record_parts.h"

namespace gptbench {

// The part that is known before the run starts: deck, sizes, FLOPs, arena and the machine of this
// process, for the ranks of the plan on `nodes` nodes; `stages`: stage_figures() of the plan. Also
// the record of a sweep's job that ended without one of its own. Nothing measured, no hostnames, no
// outcome.
Record planned_record(const Deck& deck, const Plan& plan, const std::vector<StageFigures>& stages,
                      int64_t nodes, int64_t ranks_per_node, const std::string& argv);

// Adds what the ranks gathered, and the algorithms that were selected, as "name=value" lines.
void add_machine(Record& record, const MachineFacts& machine, const std::string& selected);

// The peak of a device in TFLOP/s and where it is from: the deck, the data sheet of the device, or
// its GEMM ceiling, where that was measured.
struct Peak {
  double tflops = 0.0;  // 0: not known
  std::string source;   // "deck", "known device", "measured GEMM ceiling"
  std::string note;     // why there is no data sheet, or that the clock is not the data sheet's
};
Peak peak_of(const Plan& plan, const RunParts& parts);

// Adds what the run measured, and the figures that follow from it, to its planned record.
void complete_record(Record& record, const Plan& plan, const RunParts& parts);

// Sets status, verdict and reason of the record.
void set_outcome(Record& record, Exit outcome, const std::string& reason);

}  // namespace gptbench
