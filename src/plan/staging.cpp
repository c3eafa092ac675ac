#include "plan/staging.h"

#include <algorithm>

#include "plan/tasks.h"

namespace gptbench {

int64_t staging_bytes(const Plan& plan, QueueId queue) {
  int64_t largest = 0;
  for_each_operation(plan, [&](int32_t i, int64_t all_rows, int64_t /*times*/) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (op.queue != queue) return;
    if (is_transfer(op.kind) && plan.config.parallel.offload_target == OffloadTarget::file)
      largest = std::max(largest, std::min(file_piece_bytes, transfer_bytes(plan, op, all_rows)));
    if (!is_message(op.kind) || plan.config.run.comm == CommLibrary::nccl) return;
    const int64_t full = payload_bytes(op, all_rows);
    const bool scatters = op.kind == OpKind::reduce_scatter;
    largest = std::max(largest, full + (scatters ? full / plan.grid.size_of(op.axis) : 0));
  });
  return largest;
}

int64_t staging_bytes(const Plan& plan) {
  int64_t sum = 0;
  for (int q = 0; q < num_queues; ++q) sum += staging_bytes(plan, static_cast<QueueId>(q));
  return sum;
}

}  // namespace gptbench
