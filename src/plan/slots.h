// How many slots the buffers of micro-batches have. Internal to the plan layer.
#pragma once

#include "plan/plan.h"

namespace gptbench {

// Sets Buffer::slots of buffers of lifetime `micro_batch`: one for each micro-batch that is within
// the passes that use the buffer at one time. What another stage sends may arrive a pass earlier
// (plan/tasks.h). What it is sent has one slot more: while that is written, the message before is
// in flight.
//
// Virtual stages of a rank do not all have their most micro-batches at the same time. Their arrays
// of one size share slots (Buffer::shares) where that takes fewer than slots of each. Example:
// stage 0 of 12, 8 virtual stages each: 4 of them have up to 24 micro-batches at a time, 4 up to
// 12, which makes 144; all together have 107.
void assign_slots(Plan& plan);

}  // namespace gptbench
