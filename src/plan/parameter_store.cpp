#include "plan/parameter_store.h"

#include <algorithm>

#include "base/error.h"

namespace gptbench {

namespace {

// Element type for a resolved value of &precision: that of activations or of sums, the two that
// kernels have.
DType type_of_value(const PlanBuilder& builder, Precision value) {
  const DType type = dtype_of(value);
  GPTBENCH_CHECK(type == builder.A() || type == builder.S(),
                 "kernels for numbers of " + name_of(value));
  return type;
}

}  // namespace

ParameterStore::ParameterStore(PlanBuilder& builder, const Fp8State* fp8)
    : builder_(builder), fp8_(fp8) {
  const Plan& plan = builder.plan();
  const Grid& grid = plan.grid;
  const bool alone = grid.size_of(Axis::zero) == 1;
  sum_axis_ = grid.context > 1 ? Axis::zero : Axis::data;
  zero_stage_ = alone ? 0 : static_cast<int>(plan.config.parallel.zero_stage);
  shards_ = plan.space.num_shards;
  shard_rank_ = grid.place_of(plan.rank, Axis::shard);
  reduce_each_ = !alone && (zero_stage_ >= 2 || plan.config.run.deterministic);
  const PrecisionConfig& precision = plan.config.precision;
  working_type_ = type_of_value(builder, precision.parameters);
  gradient_type_ = type_of_value(builder, precision.reduce);
  const DType moments = type_of_value(builder, precision.optimizer_state);
  one_copy_ = working_type_ == builder.S() || !precision.master_weights;

  const bool sharded = zero_stage_ >= 1;
  add_representation(Role::working, "working", MemoryClass::parameters, working_type_,
                     zero_stage_ == 3 ? Extent::shards : Extent::flat);
  if (zero_stage_ < 2)
    add_representation(Role::gradient, "gradient", MemoryClass::gradients, gradient_type_,
                       Extent::flat);
  if (sharded || reduce_each_)
    add_representation(Role::gradient_shard, "gradient_shard", MemoryClass::gradients,
                       gradient_type_, Extent::shards);
  const Extent state = sharded ? Extent::shards : Extent::flat;
  if (one_copy_) {
    // One copy serves as working and master; where it is flat, this rank updates its part of it.
    add_representation(Role::master, "", MemoryClass::parameters, working_type_,
                       sharded && zero_stage_ < 3 ? Extent::own_part : state);
  } else {
    add_representation(Role::master, "master", MemoryClass::optimizer_state, builder.S(), state);
  }
  add_representation(Role::moment1, "moment1", MemoryClass::optimizer_state, moments, state);
  add_representation(Role::moment2, "moment2", MemoryClass::optimizer_state, moments, state);

  if (zero_stage_ == 3 || is_offloaded(Role::working))
    weight_windows_ = add_windows("gathered", MemoryClass::parameters, working_type_, 2);
  if (working_type_ != builder.A())
    converted_windows_ = add_windows("converted", MemoryClass::parameters, builder.A(), 1);
  if (zero_stage_ >= 2)
    gradient_windows_ = add_windows("gradient_window", MemoryClass::gradients, gradient_type_, 2);
  if (gradient_type_ != builder.S())
    sum_windows_ = add_windows("gradient_sum", MemoryClass::gradients, builder.S(), 1);
  if (fp8_ != nullptr) add_fp8_copies();
  add_transfer_windows();
  if (reduce_each_) {
    int64_t largest = 0;
    for (const Unit& unit : plan.space.units) largest = std::max(largest, unit.shard);
    for (const char* name : {"reduced.0", "reduced.1"})
      reduced_.push_back(builder.add_buffer(name, MemoryClass::communication, Lifetime::run,
                                            gradient_type_, largest));
  }
}

Residency ParameterStore::residency_of(Role role) const {
  const ParallelConfig& parallel = builder_.plan().config.parallel;
  const Residency away =
      parallel.offload_target == OffloadTarget::file ? Residency::file : Residency::host;
  const bool is_parameter = role == Role::working || (role == Role::master && one_copy_);
  const bool is_state =
      role == Role::moment1 || role == Role::moment2 || (role == Role::master && !one_copy_);
  if (is_parameter && contains(parallel.offload, Offload::parameters)) return away;
  if (is_state && contains(parallel.offload, Offload::optimizer)) return away;
  return Residency::device;
}

void ParameterStore::add_representation(Role role, const char* name, MemoryClass memory_class,
                                        DType dtype, Extent extent) {
  const Plan& plan = builder_.plan();
  const Residency residency = residency_of(role);
  if (residency != Residency::device)
    memory_class = residency == Residency::file ? MemoryClass::file : MemoryClass::host;
  Representation copy{role, dtype, residency, extent, -1};
  if (name[0] == '\0')
    copy.buffer = plan.representation(Role::working).buffer;
  else
    copy.buffer = builder_.add_buffer(
        name, memory_class, Lifetime::run, dtype,
        extent == Extent::flat ? plan.space.elements : plan.space.shard_elements);
  builder_.add(copy);
}

bool ParameterStore::is_offloaded(Role role) const {
  return builder_.plan().representation(role).residency != Residency::device;
}

// Layers take turns with `turns_of_layers` windows, the others have one each; [unit].
std::vector<int> ParameterStore::add_windows(const char* name, MemoryClass memory_class,
                                             DType dtype, size_t turns_of_layers) {
  const std::vector<Unit>& units = builder_.plan().space.units;
  int64_t largest_layer = 0;
  for (const Unit& unit : units)
    if (unit.kind == UnitKind::layer) largest_layer = std::max(largest_layer, unit.size());
  const auto add = [&](const std::string& which, int64_t elements) {
    return builder_.add_buffer(std::string(name) + "." + which, memory_class, Lifetime::run, dtype,
                               elements);
  };
  std::vector<int> turns, windows;
  for (const Unit& unit : units) {
    if (unit.kind == UnitKind::layer) {
      if (turns.size() < turns_of_layers)
        turns.push_back(add("layer_" + std::to_string(turns.size()), largest_layer));
      windows.push_back(-1);
    } else {
      windows.push_back(add(unit.kind == UnitKind::token_embedding      ? "wte"
                            : unit.kind == UnitKind::position_embedding ? "wpe"
                            : unit.kind == UnitKind::head               ? "head"
                                                                        : "ln_f",
                            unit.size()));
    }
  }
  // Neighbours in the order of layers alternate.
  size_t turn = 0;
  for (int& window : windows)
    if (window < 0) window = turns[turn++ % turns.size()];
  return windows;
}

void ParameterStore::gather(int unit) {
  if (weight_windows_.empty() || unit < 0) return;
  const int window = weight_windows_[static_cast<size_t>(unit)];
  const auto held = held_.find(window);
  if (held != held_.end() && held->second == unit) return;
  held_[window] = unit;
  const Plan& plan = builder_.plan();
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  Operand shard = zero_stage_ == 3 ? shard_operand(Role::working, unit)
                                   : Operand{plan.representation(Role::working).buffer, u.begin};
  if (is_offloaded(Role::working)) {
    const Operand target =
        zero_stage_ == 3 ? Operand{transfer_windows_.at(Role::working)[unit % 2]} : Operand{window};
    builder_.emit(ops::load(flat(zero_stage_ == 3 ? u.shard : u.size()), shard, target));
    shard = target;
  }
  if (zero_stage_ == 3)
    builder_.emit(ops::all_gather({QueueId::data, Axis::shard}, flat(u.size()),
                                  dtype_bytes(Role::working), shard, {window}));
}

Operand ParameterStore::weight(int tensor) {
  if (tensor < 0) return {};
  const FlatSpace& space = builder_.plan().space;
  const int local = space.find(tensor);
  GPTBENCH_CHECK(local >= 0, builder_.plan().tensors[static_cast<size_t>(tensor)].name +
                                 " is held by this rank");
  const int64_t begin = space.placements[static_cast<size_t>(local)].begin;
  const int unit = space.unit_of[static_cast<size_t>(local)];
  Operand whole = whole_weight(unit);
  if (!converted_windows_.empty()) whole = converted(unit, whole);
  return {whole.buffer, whole.offset + begin - space.units[static_cast<size_t>(unit)].begin};
}

Operand ParameterStore::whole_weight(int unit) const {
  if (!weight_windows_.empty()) return {weight_windows_[static_cast<size_t>(unit)]};
  const Plan& plan = builder_.plan();
  return {plan.representation(Role::working).buffer,
          plan.space.units[static_cast<size_t>(unit)].begin};
}

// Converted as late as can be, where they are read first: a gather that is under way hides behind
// what comes before.
Operand ParameterStore::converted(int unit, Operand whole) {
  const int window = converted_windows_[static_cast<size_t>(unit)];
  const auto held = held_.find(window);
  if (held != held_.end() && held->second == unit) return {window};
  held_[window] = unit;
  const Unit& u = builder_.plan().space.units[static_cast<size_t>(unit)];
  Op op = ops::convert({flat(u.size())}, whole, {window});
  op.region = Region::linear;
  if (u.kind == UnitKind::layer) op.layer = static_cast<int32_t>(u.layer);
  builder_.emit(op);
  return {window};
}

Operand ParameterStore::shard_operand(Role role, int unit) const {
  const Plan& plan = builder_.plan();
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const Representation& copy = plan.representation(role);
  return {copy.buffer,
          copy.extent == Extent::shards ? u.shard_begin : u.begin + shard_rank_ * u.shard};
}

int64_t ParameterStore::dtype_bytes(Role role) const {
  return size_of(builder_.plan().representation(role).dtype);
}

}  // namespace gptbench
