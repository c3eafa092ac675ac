// Order between queues, derived from what operations read and write.
#pragma once

#include "plan/plan.h"

namespace gptbench {

// Fills Op::waits_for and Op::events of all operations: whatever touches data that an operation of
// another queue writes, or writes data that one reads, waits for it. Data is told apart by buffer
// and, in copies of flat space, by unit. Within the issuing program the first toucher waits; where
// a program ends before anyone has touched the data, the first toucher of every program does (it
// waits for the latest instance; of a message between stages, for the one in its slot of the
// message's buffer).
void resolve_waits(Plan& plan);

}  // namespace gptbench
