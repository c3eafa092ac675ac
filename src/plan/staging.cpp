#include "plan/staging.h"

#include <algorithm>

namespace gptbench {

int64_t staging_bytes(const Plan& plan, QueueId queue) {
  int64_t largest = 0;
  for_each_operation(plan, [&](const Task& task, int32_t i) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (!is_message(op.kind) || op.queue != queue) return;
    const int64_t full = payload_bytes(op, task.sequences.count * plan.T_local());
    const bool in_parts = op.kind == OpKind::reduce_scatter || op.kind == OpKind::all_gather;
    largest = std::max(largest, full + (in_parts ? full / plan.grid.size_of(op.axis) : 0));
  });
  return largest;
}

int64_t staging_bytes(const Plan& plan) {
  int64_t sum = 0;
  for (int q = 0; q < num_queues; ++q) sum += staging_bytes(plan, static_cast<QueueId>(q));
  return sum;
}

}  // namespace gptbench
