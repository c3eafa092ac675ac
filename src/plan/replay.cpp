#include "plan/replay.h"

namespace gptbench {

std::string replay_obstacle(const Plan& plan) {
  const Config& config = plan.config;
  if (config.run.device != "cuda") return "device = '" + config.run.device + "' records nothing";
  if (config.model.dropout > 0.0) return "model.dropout draws other masks in every step";
  for (const Op& op : plan.ops) {
    if (is_message(op.kind)) return "messages between ranks are counted as they are sent";
    if (is_transfer(op.kind) && config.parallel.offload_target == "file")
      return "offload_target = 'file' is read and written by the host";
  }
  return "";
}

}  // namespace gptbench
