#include "memory/budget.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "comm/agree.h"
#include "device/memory_offer.h"
#include "plan/staging.h"

namespace gptbench {
namespace {

// What a reduce-scatter takes beside the plan on the first rank of three and more, which reduces
// whole arrays: two of them in Open MPI 4.1.4 (309 MB for a table of 154 MB, 2026-11-27).
int64_t scattering_bytes(const Plan& plan) {
  int64_t largest = 0;
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::reduce_scatter && plan.grid.size_of(op.axis) > 2 &&
        plan.grid.place_of(plan.rank, op.axis) == 0)
      largest = std::max(largest, payload_bytes(op, plan.micro_batches.rows));
  return plan.config.run.comm == CommLibrary::nccl ? 0 : 2 * largest;
}

// Sum of `bytes` over the ranks whose device is that of this rank. Collective.
int64_t sum_over_device(MpiWorld& world, const std::string& identity, int64_t bytes) {
  std::map<std::string, int64_t> sums;
  for (const std::string& entry : world.gather(identity + " " + std::to_string(bytes))) {
    const size_t space = entry.find(' ');
    sums[entry.substr(0, space)] += std::stoll(entry.substr(space + 1));
  }
  std::string text;
  for (const auto& [device, sum] : sums) text += device + " " + std::to_string(sum) + ",";
  world.broadcast(text);
  for (const std::string& entry : split(text, ','))
    if (entry.rfind(identity + " ", 0) == 0) return std::stoll(entry.substr(identity.size() + 1));
  return bytes;
}

}  // namespace

MemoryBudget agree_on_memory(MpiWorld& world, const Device& device, const Plan& plan) {
  MemoryBudget budget;
  const std::string who = "rank " + std::to_string(world.rank());
  const int64_t pool = device_total(plan.class_bytes);
  const std::string& identity = device.info().identity;
  std::string reason;

  // Bytes that the node must hold: everything, or what does not lie on a device with own memory.
  int64_t on_node = total(plan.class_bytes) + scattering_bytes(plan);
  MemoryOffer node = device.memory_offer();
  if (!identity.empty()) {
    on_node += staging_bytes(plan) - pool;
    node = read_memory_offer();
  }
  budget.need_bytes = world.node_sum(on_node + runtime_bytes_per_rank);
  budget.offer_bytes = node.available_bytes;
  if (budget.need_bytes > budget.offer_bytes)
    reason = "the " + std::to_string(world.node_size()) + " ranks on the node of " + who +
             " need " + format_bytes(budget.need_bytes) + ", the node offers " +
             format_bytes(budget.offer_bytes);

  if (!world.all(identity.empty())) {
    const int64_t need = sum_over_device(world, identity, pool);
    const int64_t offer = device.memory_offer().available_bytes;
    if (reason.empty()) {
      budget.need_bytes = need;
      budget.offer_bytes = offer;
    }
    if (reason.empty() && need > offer)
      reason = "the ranks on the device of " + who + " need " + format_bytes(need) +
               ", it offers " + format_bytes(offer);
  }

  const double cap = plan.config.memory.device_memory_gib * static_cast<double>(GiB);
  if (cap > 0.0 && static_cast<double>(pool) > cap)
    reason = who + " needs " + format_bytes(pool) + ", device_memory_gib allows " +
             format_bytes(static_cast<int64_t>(cap));

  budget.fits = world.all(reason.empty());
  if (!budget.fits) budget.reason = first_text(world, reason);
  return budget;
}

int64_t ranks_of_memory(MpiWorld& world, const Device& device) {
  const std::string& identity = device.info().identity;
  return world.all(identity.empty()) ? world.node_size() : sum_over_device(world, identity, 1);
}

}  // namespace gptbench
