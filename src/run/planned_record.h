// The part of a record that is known before the run starts. Also used for a job of a sweep that
// ended without a record.
#pragma once

#include <string>

#include "base/error.h"
#include "deck/deck.h"
#include "plan/plan.h"
#include "record/record.h"

namespace gptbench {

// Deck, sizes, FLOPs, arena and the machine of this process, for the ranks of the plan on `nodes`
// nodes. Nothing measured, no hostnames, no outcome.
Record planned_record(const Deck& deck, const Plan& plan, int64_t nodes, int64_t ranks_per_node,
                      const std::string& argv);

// Sets status, verdict and reason of the record.
void set_outcome(Record& record, Exit outcome, const std::string& reason);

}  // namespace gptbench
