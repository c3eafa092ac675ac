#include "memory/budget.h"

#include <cmath>

#include "base/units.h"

namespace gptbench {
namespace {

// Text of the lowest rank that has one, on all ranks.
std::string first_reason(MpiWorld& world, const std::string& mine) {
  std::string reason;
  for (const std::string& text : world.gather(mine)) {
    if (text.empty()) continue;
    reason = text;
    break;
  }
  world.broadcast(reason);
  return reason;
}

}  // namespace

MemoryBudget agree_on_memory(MpiWorld& world, const Device& device, const Plan& plan) {
  MemoryBudget budget;
  const int64_t arena = total(plan.class_bytes);
  const std::string who = "rank " + std::to_string(world.rank());
  std::string reason;

  budget.need_bytes = world.node_sum(arena + runtime_bytes_a_rank);
  budget.offer_bytes = device.memory_offer().available_bytes;
  if (budget.need_bytes > budget.offer_bytes)
    reason = "the " + std::to_string(world.node_size()) + " ranks on the node of " + who +
             " need " + format_bytes(budget.need_bytes) + ", the node offers " +
             format_bytes(budget.offer_bytes);

  const double cap = plan.config.memory.device_memory_gib * static_cast<double>(GiB);
  const int64_t pool = device_total(plan.class_bytes);
  if (cap > 0.0 && static_cast<double>(pool) > cap)
    reason = who + " needs " + format_bytes(pool) + ", device_memory_gib allows " +
             format_bytes(static_cast<int64_t>(cap));

  budget.fits = world.all(reason.empty());
  if (!budget.fits) budget.reason = first_reason(world, reason);
  return budget;
}

}  // namespace gptbench
