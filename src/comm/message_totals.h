// What the message counter saw (message_counter.h), for those who compare it with the plan.
#pragma once

#include <cstdint>

#include "plan/grid.h"
#include "plan/operation.h"

namespace gptbench {

struct MessageTotal {
  int64_t messages = 0;  // calls of MPI; a large operation is cut into several (plan/messages.h)
  int64_t bytes = 0;     // elements x size of their type
};

MessageTotal messages_counted(Axis axis, OpKind kind);
void reset_message_counts();

}  // namespace gptbench
