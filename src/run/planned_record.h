// What is known of a run before it starts, for its record: of a run itself, and of a job of a sweep
// that ended before it could write one.
#pragma once

#include <string>

#include "base/error.h"
#include "deck/deck.h"
#include "plan/plan.h"
#include "record/record.h"

namespace gptbench {

// Deck, sizes, FLOPs, arena and the machine that this process runs on; the world of the plan on
// `nodes` nodes. Nothing measured, no hosts, no outcome.
Record planned_record(const Deck& deck, const Plan& plan, int64_t nodes, int64_t ranks_per_node,
                      const std::string& argv);

// status, verdict and reason of the record.
void set_outcome(Record& record, Exit outcome, const std::string& reason);

}  // namespace gptbench
