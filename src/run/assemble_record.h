// The record of a run, assembled from what its phases return: the only place that fills one in. The
// records of projections and calibrations begin with the same planned one.
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

// The provenance of a planned record with what the ranks gathered, and with the algorithms that
// were selected, as "name=value" lines.
Provenance with_machine(Provenance planned, const MachineFacts& machine,
                        const std::string& selected);

// The peak of a device in TFLOP/s and where it is from: the deck, the data sheet of the device, or
// its GEMM ceiling, where that was measured.
Peak peak_of(const Plan& plan, const RunParts& parts);

// The record of a run: the planned one, what the run measured, and the figures that follow from it.
// With parts.end: outcome, and whether the run keeps the rules of its problem class.
Record run_record(const Record& planned, const Plan& plan, const RunParts& parts);

// Sets status, verdict, reason and failed step of the record.
void set_end(Record& record, const RunEnd& end);

}  // namespace gptbench
