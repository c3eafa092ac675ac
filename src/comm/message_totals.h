// Totals of the message counters (message_counter.h, cuda/nccl_library.h), which are compared with
// the plan.
#pragma once

#include <cstdint>

#include "plan/grid.h"
#include "plan/operation.h"

namespace gptbench {

struct MessageTotal {
  int64_t messages = 0;  // library calls; a large operation takes several (plan/messages.h)
  int64_t bytes = 0;     // elements x size of their type
};

MessageTotal messages_counted(Axis axis, OpKind kind);
void reset_message_counts();
// Adds one message; called by the counters only.
void count_message(Axis axis, OpKind kind, int64_t bytes);

}  // namespace gptbench
