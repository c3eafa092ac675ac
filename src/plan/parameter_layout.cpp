#include "plan/parameter_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace gptbench {
namespace {

// Layers take turns with `turns_of_layers` windows, the others have one each; [unit].
std::vector<int> add_windows(PlanBuilder& builder, const char* name, MemoryClass memory_class,
                             DType dtype, size_t turns_of_layers) {
  const std::vector<Unit>& units = builder.plan().space.units;
  int64_t largest_layer = 0;
  for (const Unit& unit : units)
    if (unit.kind == UnitKind::layer) largest_layer = std::max(largest_layer, unit.size());
  const auto add = [&](const std::string& which, int64_t elements) {
    return builder.add_buffer(std::string(name) + "." + which, memory_class, Lifetime::run, dtype,
                              elements);
  };
  const auto name_of_window = [](UnitKind kind) {
    return kind == UnitKind::token_embedding      ? "wte"
           : kind == UnitKind::position_embedding ? "wpe"
           : kind == UnitKind::head               ? "head"
                                                  : "ln_f";
  };
  std::vector<int> turns, windows;
  size_t layers = 0;
  for (const Unit& unit : units) {
    if (unit.kind != UnitKind::layer) {
      windows.push_back(add(name_of_window(unit.kind), unit.size()));
      continue;
    }
    if (layers < turns_of_layers)
      turns.push_back(add("layer_" + std::to_string(layers), largest_layer));
    windows.push_back(turns[layers++ % turns_of_layers]);
  }
  return windows;
}

}  // namespace

ParameterLayout::ParameterLayout(PlanBuilder& builder, const Fp8State* fp8)
    : plan(builder.plan()), assigned(builder) {
  const bool alone = plan.grid.size_of(Axis::zero) == 1;
  zero_stage = alone ? 0 : static_cast<int>(plan.config.parallel.zero_stage);
  shard_rank = plan.grid.place_of(plan.rank, Axis::shard);
  reduces_each = !alone && (zero_stage >= 2 || plan.config.run.deterministic);
  const PrecisionConfig& precision = plan.config.precision;
  types.working = dtype_of(precision.parameters);
  types.gathered = zero_stage < 3                         ? types.working
                   : precision.gather == Precision::auto_ ? builder.A()
                                                          : dtype_of(precision.gather);
  types.gradient = dtype_of(precision.reduce);
  const DType moments = dtype_of(precision.optimizer_state);
  for (const DType type : {types.working, types.gathered, types.gradient, moments})
    GPTBENCH_CHECK(type == builder.A() || type == builder.S(),
                   std::string("kernels for numbers of type ") + name_of(type));
  const ParallelConfig& parallel = plan.config.parallel;
  updates_on_host = parallel.offload_update == OffloadUpdate::host;
  one_type = types.working == builder.S() || !precision.master_weights;
  one_copy = one_type && (!updates_on_host || contains(parallel.offload, Offload::parameters));

  add(builder, Role::working, "working", types.working,
      zero_stage == 3 ? Extent::shards : Extent::flat);
  if (zero_stage < 2) add(builder, Role::gradient, "gradient", types.gradient, Extent::flat);
  if (sharded() || reduces_each)
    add(builder, Role::gradient_shard, "gradient_shard", types.gradient, Extent::shards);
  const Extent state = sharded() ? Extent::shards : Extent::flat;
  // Where one copy serves as working and master and is flat, this rank updates its part of it.
  const bool own_part = one_copy && sharded() && zero_stage < 3;
  add(builder, Role::master, "master", one_type ? types.working : builder.S(),
      own_part ? Extent::own_part : state);
  add(builder, Role::moment1, "moment1", moments, state);
  add(builder, Role::moment2, "moment2", moments, state);

  const MemoryClass parameters = MemoryClass::parameters, gradients = MemoryClass::gradients;
  if (zero_stage == 3 || is_offloaded(Role::working))
    windows.gathered = add_windows(builder, "gathered", parameters, types.gathered, 2);
  if (types.gathered != builder.A())
    windows.converted = add_windows(builder, "converted", parameters, builder.A(), 1);
  if (zero_stage >= 2)
    windows.gradient = add_windows(builder, "gradient_window", gradients, types.gradient, 2);
  if (types.gradient != builder.S())
    windows.sum = add_windows(builder, "gradient_sum", gradients, builder.S(), 1);
  if (fp8 != nullptr) fp8_copies = Fp8Copies(builder, windows.gathered.empty(), fp8->transposes());
  add_offload_windows(builder);
  if (updates_on_host) add_host_windows(builder);
  if (!reduces_each) return;
  int64_t largest = 0;
  for (const Unit& unit : plan.space.units) largest = std::max(largest, unit.shard);
  for (const char* name : {"reduced.0", "reduced.1"})
    reduced.push_back(builder.add_buffer(name, MemoryClass::communication, Lifetime::run,
                                         types.gradient, largest));
}

Residency ParameterLayout::residency_of(Role role) const {
  const ParallelConfig& parallel = plan.config.parallel;
  const Residency away =
      parallel.offload_target == OffloadTarget::file ? Residency::file : Residency::host;
  const bool is_parameter = role == Role::working || (role == Role::master && one_copy);
  const bool is_state =
      role == Role::moment1 || role == Role::moment2 || (role == Role::master && !one_copy);
  if (is_parameter && contains(parallel.offload, Offload::parameters)) return away;
  if (is_state && contains(parallel.offload, Offload::optimizer)) return away;
  return Residency::device;
}

void ParameterLayout::add(PlanBuilder& builder, Role role, const char* name, DType dtype,
                          Extent extent) {
  Representation copy{role, dtype, residency_of(role), extent, -1};
  const MemoryClass memory_class = copy.residency == Residency::file   ? MemoryClass::file
                                   : copy.residency == Residency::host ? MemoryClass::host
                                   : role == Role::working             ? MemoryClass::parameters
                                   : role == Role::gradient || role == Role::gradient_shard
                                       ? MemoryClass::gradients
                                       : MemoryClass::optimizer_state;
  if (role == Role::master && one_copy)
    copy.buffer = plan.representation(Role::working).buffer;
  else
    copy.buffer = builder.add_buffer(
        name, memory_class, Lifetime::run, dtype,
        extent == Extent::flat ? plan.space.elements : plan.space.shard_elements);
  builder.add(copy);
}

int64_t ParameterLayout::largest_part() const {
  int64_t largest = 0;
  for (size_t u = 0; u < plan.space.units.size(); ++u)
    largest = std::max(largest, part_elements(static_cast<int>(u)));
  return largest;
}

// Two for each role that the device touches and that resides elsewhere.
void ParameterLayout::add_offload_windows(PlanBuilder& builder) {
  for (const auto& [role, name] :
       {std::pair{Role::working, "working"}, std::pair{Role::master, "master"},
        std::pair{Role::moment1, "moment1"}, std::pair{Role::moment2, "moment2"}}) {
    if (!is_offloaded(role) || (updates_on_host && role != Role::working)) continue;
    if (role == Role::master && one_copy) {
      offload_windows[role] = offload_windows.at(Role::working);
      continue;
    }
    for (const size_t i : {0, 1})
      offload_windows[role][i] = builder.add_buffer(
          "transfer." + std::string(name) + "." + std::to_string(i), MemoryClass::optimizer_state,
          Lifetime::run, plan.representation(role).dtype, largest_part());
  }
}

// Two for the gradient, and for parameters on the device where they differ from the master copy in
// type.
void ParameterLayout::add_host_windows(PlanBuilder& builder) {
  host_scalars =
      builder.add_buffer("scalars", MemoryClass::host, Lifetime::run, DType::f64, num_scalars);
  const auto add = [&](Role role, const std::string& name) {
    for (const size_t i : {0, 1})
      host_windows[role][i] =
          builder.add_buffer("transfer." + name + "." + std::to_string(i), MemoryClass::host,
                             Lifetime::run, plan.representation(role).dtype, largest_part());
  };
  add(reduced_gradient(), "gradient");
  if (!is_offloaded(Role::working) && !one_type) add(Role::working, "working");
}

int64_t ParameterLayout::part_begin(int u) const {
  return unit(u).begin + (sharded() ? shard_rank * unit(u).shard : 0);
}

bool ParameterLayout::is_offloaded(Role role) const {
  return plan.representation(role).residency != Residency::device;
}

Operand ParameterLayout::whole_weight(int u) const {
  if (!windows.gathered.empty()) return {windows.gathered[static_cast<size_t>(u)]};
  return {plan.representation(Role::working).buffer, unit(u).begin};
}

Operand ParameterLayout::whole_gradient(int u) const {
  if (!windows.gradient.empty()) return {windows.gradient[static_cast<size_t>(u)]};
  return {plan.representation(Role::gradient).buffer, unit(u).begin};
}

Operand ParameterLayout::summed_gradient(int u) const {
  return windows.sum.empty() ? whole_gradient(u) : Operand{windows.sum[static_cast<size_t>(u)]};
}

Operand ParameterLayout::shard(Role role, int u) const {
  const Representation& copy = plan.representation(role);
  const int64_t flat_begin = unit(u).begin + shard_rank * unit(u).shard;
  return {copy.buffer, copy.extent == Extent::shards ? unit(u).shard_begin : flat_begin};
}

Operand ParameterLayout::offload_window(Role role, int u) const {
  return {offload_windows.at(role)[static_cast<size_t>(u % 2)]};
}

Operand ParameterLayout::resident(Role role, int u, int64_t flat) const {
  const Representation& copy = plan.representation(role);
  const int64_t within = flat - part_begin(u);
  return {copy.buffer, copy.extent == Extent::shards ? unit(u).shard_begin + within : flat};
}

Operand ParameterLayout::state(Role role, int u, int64_t flat) const {
  const auto& in_turn = updates_on_host ? host_windows : offload_windows;
  const auto found = in_turn.find(role);
  if (found == in_turn.end()) return resident(role, u, flat);
  return {found->second[static_cast<size_t>(u % 2)], flat - part_begin(u)};
}

ParameterLayout::Place ParameterLayout::place_of(int tensor) const {
  const int local = plan.space.find(tensor);
  GPTBENCH_CHECK(local >= 0,
                 plan.tensors[static_cast<size_t>(tensor)].name + " is held by this rank");
  const int u = plan.space.unit_of[static_cast<size_t>(local)];
  return {u, plan.space.placements[static_cast<size_t>(local)].begin - unit(u).begin};
}

}  // namespace gptbench
