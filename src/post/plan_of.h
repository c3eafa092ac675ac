#pragma once

#include "plan/plan.h"
#include "record/record.h"

namespace gptbench {

// The plan of rank 0, as the run or the projection of a record made it. Throws Error(Exit::usage)
// where the record's deck is none of this program's, or asks for what no run has: files come from
// anyone, and such a plan would take memory and time.
Plan plan_of(const Record& record);

}  // namespace gptbench
