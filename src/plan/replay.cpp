#include "plan/replay.h"

namespace gptbench {

std::string replay_obstacle(const Plan& plan) {
  const Config& config = plan.config;
  if (!plan.device.replays) return "device = '" + name_of(config.run.device) + "' records nothing";
  for (const Op& op : plan.ops) {
    if (is_message(op.kind) && config.run.comm != CommLibrary::nccl)
      return "comm = '" + name_of(config.run.comm) + "': the host moves the messages";
    // Where a rank's sends and receives are branches that wait for nothing of each other, a graph
    // may run them one after the other, and ranks that do so in different orders wait for ever.
    if (op.kind == OpKind::send || op.kind == OpKind::receive)
      return "of messages from rank to rank (pipeline stages, rings of the context axis) a graph "
             "does not say that they run at the same time";
    if (is_transfer(op.kind) && config.parallel.offload_target == OffloadTarget::file)
      return "offload_target = 'file' is read and written by the host";
    if (op.queue == QueueId::host_kernels)
      return "offload_update = 'host' runs when the host has what it reads";
  }
  return "";
}

}  // namespace gptbench
