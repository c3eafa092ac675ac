// What the message counters saw (message_counter.h; cuda/nccl_library.h), for those who compare it
// with the plan.
#pragma once

#include <cstdint>

#include "plan/grid.h"
#include "plan/operation.h"

namespace gptbench {

struct MessageTotal {
  int64_t messages =
      0;  // calls of the library; a large operation is cut into several (plan/messages.h)
  int64_t bytes = 0;  // elements x size of their type
};

MessageTotal messages_counted(Axis axis, OpKind kind);
void reset_message_counts();
// Books one message; of the counters alone.
void count_message(Axis axis, OpKind kind, int64_t bytes);

}  // namespace gptbench
