#include "plan/parameter_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"

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

ParameterLayout::ParameterLayout(PlanBuilder& builder, const Fp8State* fp8) : plan(builder.plan()) {
  const bool alone = plan.grid.size_of(Axis::zero) == 1;
  zero_stage = alone ? 0 : static_cast<int>(plan.config.parallel.zero_stage);
  shard_rank = plan.grid.place_of(plan.rank, Axis::shard);
  reduces_each = !alone && (zero_stage >= 2 || plan.config.run.deterministic);
  const PrecisionConfig& precision = plan.config.precision;
  working_type = dtype_of(precision.parameters);
  gathered_type = zero_stage < 3                         ? working_type
                  : precision.gather == Precision::auto_ ? builder.A()
                                                         : dtype_of(precision.gather);
  gradient_type = dtype_of(precision.reduce);
  const DType moments = dtype_of(precision.optimizer_state);
  for (const DType type : {working_type, gathered_type, gradient_type, moments})
    GPTBENCH_CHECK(type == builder.A() || type == builder.S(),
                   std::string("kernels for numbers of type ") + name_of(type));
  const ParallelConfig& parallel = plan.config.parallel;
  updates_on_host = parallel.offload_update == OffloadUpdate::host;
  one_type = working_type == builder.S() || !precision.master_weights;
  one_copy = one_type && (!updates_on_host || contains(parallel.offload, Offload::parameters));

  add(builder, Role::working, "working", working_type,
      zero_stage == 3 ? Extent::shards : Extent::flat);
  if (zero_stage < 2) add(builder, Role::gradient, "gradient", gradient_type, Extent::flat);
  if (sharded() || reduces_each)
    add(builder, Role::gradient_shard, "gradient_shard", gradient_type, Extent::shards);
  const Extent state = sharded() ? Extent::shards : Extent::flat;
  // Where one copy serves as working and master and is flat, this rank updates its part of it.
  const bool own_part = one_copy && sharded() && zero_stage < 3;
  add(builder, Role::master, "master", one_type ? working_type : builder.S(),
      own_part ? Extent::own_part : state);
  add(builder, Role::moment1, "moment1", moments, state);
  add(builder, Role::moment2, "moment2", moments, state);

  const MemoryClass parameters = MemoryClass::parameters, gradients = MemoryClass::gradients;
  if (zero_stage == 3 || is_offloaded(Role::working))
    gathered_windows = add_windows(builder, "gathered", parameters, gathered_type, 2);
  if (gathered_type != builder.A())
    converted_windows = add_windows(builder, "converted", parameters, builder.A(), 1);
  if (zero_stage >= 2)
    gradient_windows = add_windows(builder, "gradient_window", gradients, gradient_type, 2);
  if (gradient_type != builder.S())
    sum_windows = add_windows(builder, "gradient_sum", gradients, builder.S(), 1);
  if (fp8 != nullptr) add_fp8_copies(builder, fp8->transposes());
  add_offload_windows(builder);
  if (updates_on_host) add_host_windows(builder);
  find_assigned(builder);
  if (!reduces_each) return;
  int64_t largest = 0;
  for (const Unit& unit : plan.space.units) largest = std::max(largest, unit.shard);
  for (const char* name : {"reduced.0", "reduced.1"})
    reduced.push_back(builder.add_buffer(name, MemoryClass::communication, Lifetime::run,
                                         gradient_type, largest));
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

// One after another where one copy holds all; the matrices of each layer from the start of a window
// where they take turns.
void ParameterLayout::add_fp8_copies(PlanBuilder& builder, bool transposes) {
  const bool all = gathered_windows.empty();
  int64_t end = 0, largest = 0;
  for (const Unit& unit : plan.space.units) {
    if (unit.kind != UnitKind::layer) continue;
    if (!all) end = 0;
    for (const Linear linear : all_linears) {
      const int tensor = builder.tensor(tensor_name(unit.layer, linear, "weight"));
      const size_t local = static_cast<size_t>(plan.space.find(tensor));
      fp8_begin_[tensor] = end;
      end += round_up(plan.space.tensors[local].size(), fp8_matrix_alignment);
    }
    largest = std::max(largest, end);
  }
  const std::string name = all ? "fp8" : "fp8.layer";
  const auto add = [&](const std::string& which) {
    return builder.add_buffer(which, MemoryClass::parameters, Lifetime::run, DType::fp8_e4m3,
                              largest);
  };
  fp8_buffers_[0] = add(name);
  if (transposes) fp8_buffers_[1] = add(name + ".transposed");
}

// Matrices of the layers, and the table of the output head, which a tied embedding adds to after
// the head.
void ParameterLayout::find_assigned(const PlanBuilder& builder) {
  for (const Chunk& chunk : plan.chunks) {
    for (int64_t l = chunk.first_layer; l < chunk.end_layer; ++l)
      for (const Linear linear : all_linears)
        assigned_.insert(builder.tensor(tensor_name(l, linear, "weight")));
    if (chunk.has_head)
      assigned_.insert(
          builder.tensor(plan.shape.family.shares_embedding() ? "wte" : "lm_head.weight"));
  }
}

bool ParameterLayout::is_assigned(int tensor) const {
  return assigned_.count(tensor) != 0;
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
  if (!gathered_windows.empty()) return {gathered_windows[static_cast<size_t>(u)]};
  return {plan.representation(Role::working).buffer, unit(u).begin};
}

Operand ParameterLayout::whole_gradient(int u) const {
  if (!gradient_windows.empty()) return {gradient_windows[static_cast<size_t>(u)]};
  return {plan.representation(Role::gradient).buffer, unit(u).begin};
}

Operand ParameterLayout::summed_gradient(int u) const {
  return sum_windows.empty() ? whole_gradient(u) : Operand{sum_windows[static_cast<size_t>(u)]};
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
  const auto& windows = updates_on_host ? host_windows : offload_windows;
  const auto found = windows.find(role);
  if (found == windows.end()) return resident(role, u, flat);
  return {found->second[static_cast<size_t>(u % 2)], flat - part_begin(u)};
}

Operand ParameterLayout::fp8_copy(int tensor, bool transposed) const {
  return {fp8_buffers_[transposed ? 1 : 0], fp8_begin_.at(tensor)};
}

ParameterLayout::Place ParameterLayout::place_of(int tensor) const {
  const int local = plan.space.find(tensor);
  GPTBENCH_CHECK(local >= 0,
                 plan.tensors[static_cast<size_t>(tensor)].name + " is held by this rank");
  const int u = plan.space.unit_of[static_cast<size_t>(local)];
  return {u, plan.space.placements[static_cast<size_t>(local)].begin - unit(u).begin};
}

}  // namespace gptbench
