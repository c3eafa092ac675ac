#include "plan/tensor_parts.h"

namespace gptbench {

HeldElements held_elements(const Plan& plan, const Representation& copy, size_t local) {
  const Placement& placement = plan.space.placements[local];
  const Unit& unit = plan.space.units[static_cast<size_t>(plan.space.unit_of[local])];
  int64_t begin = placement.begin, end = placement.begin + placement.size;
  int64_t at = begin;
  if (copy.extent != Extent::flat) {
    const int64_t shard = unit.begin + plan.grid.place_of(plan.rank, Axis::shard) * unit.shard;
    begin = std::clamp(begin, shard, shard + unit.shard);
    end = std::clamp(end, shard, shard + unit.shard);
    at = copy.extent == Extent::shards ? unit.shard_begin + begin - shard : begin;
  }
  return {begin - placement.begin, {copy.buffer, at}, end - begin};
}

std::vector<Representation> parameter_copies(const Plan& plan) {
  std::vector<Representation> copies = {plan.representation(Role::working)};
  const Representation& master = plan.representation(Role::master);
  if (master.buffer != copies.front().buffer) copies.push_back(master);
  return copies;
}

DType checkpoint_type(const Config& config) {
  return type_of_activations(config) == Precision::fp64 ? DType::f64 : DType::f32;
}

int64_t checkpoint_share_bytes(const Plan& plan) {
  const std::vector<LogicalTensor> stored = tensor_table(plan.config.model);
  int64_t elements = 0;
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
      const int64_t size = stored[static_cast<size_t>(plan.space.tensors[i].tensor)].size();
      for_each_part(plan, plan.representation(role), i, Visit::once, [&](const TensorPart& part) {
        elements += std::max<int64_t>(0, std::min(part.first + part.count, size) - part.first);
      });
    }
  int64_t fp8_bytes = 0;
  if (plan.at.tensor == 0 && plan.grid.place_of(plan.rank, Axis::zero) == 0)
    fp8_bytes = static_cast<int64_t>(plan.fp8.tensors.size()) *
                (1 + plan.config.precision.fp8_amax_history) * size_of(DType::f32);
  return elements * size_of(checkpoint_type(plan.config)) + fp8_bytes;
}

}  // namespace gptbench
