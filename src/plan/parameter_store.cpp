#include "plan/parameter_store.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace gptbench {

ParameterStore::ParameterStore(PlanBuilder& builder) : builder_(builder) {
  const Plan& plan = builder.plan();
  const Grid& grid = plan.grid;
  const bool alone = grid.size_of(Axis::zero) == 1;
  sum_axis_ = grid.context > 1 ? Axis::zero : Axis::data;
  zero_stage_ = alone ? 0 : static_cast<int>(plan.config.parallel.zero_stage);
  shards_ = plan.space.num_shards;
  shard_rank_ = grid.place_of(plan.rank, Axis::shard);
  reduce_each_ = !alone && (zero_stage_ >= 2 || plan.config.run.deterministic);

  const DType A = builder.A();
  const DType S = builder.S();
  const bool sharded = zero_stage_ >= 1;
  add_representation(Role::working, "working", MemoryClass::parameters, A,
                     zero_stage_ == 3 ? Extent::shards : Extent::flat);
  if (zero_stage_ < 2)
    add_representation(Role::gradient, "gradient", MemoryClass::gradients, S, Extent::flat);
  if (sharded || reduce_each_)
    add_representation(Role::gradient_shard, "gradient_shard", MemoryClass::gradients, S,
                       Extent::shards);
  const Extent state = sharded ? Extent::shards : Extent::flat;
  if (A == S) {
    // One copy serves as working and master; where it is flat, this rank updates its part of it.
    add_representation(Role::master, "", MemoryClass::parameters, S,
                       sharded && zero_stage_ < 3 ? Extent::own_part : state);
  } else {
    add_representation(Role::master, "master", MemoryClass::optimizer_state, S, state);
  }
  add_representation(Role::moment1, "moment1", MemoryClass::optimizer_state, S, state);
  add_representation(Role::moment2, "moment2", MemoryClass::optimizer_state, S, state);

  if (zero_stage_ == 3 || is_offloaded(Role::working))
    weight_windows_ = add_windows("gathered", MemoryClass::parameters, A);
  if (zero_stage_ >= 2)
    gradient_windows_ = add_windows("gradient_window", MemoryClass::gradients, S);
  add_transfer_windows();
  if (reduce_each_) {
    int64_t largest = 0;
    for (const Unit& unit : plan.space.units) largest = std::max(largest, unit.shard);
    for (const char* name : {"reduced.0", "reduced.1"})
      reduced_.push_back(
          builder.add_buffer(name, MemoryClass::communication, Lifetime::run, S, largest));
  }
}

namespace {

bool contains(const std::string& list, const char* word) {
  const std::vector<std::string> words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Residency ParameterStore::residency_of(Role role) const {
  const ParallelConfig& parallel = builder_.plan().config.parallel;
  const Residency away = parallel.offload_target == "file" ? Residency::file : Residency::host;
  const bool one_copy = builder_.A() == builder_.S();  // working copy and master are one
  const bool is_parameter = role == Role::working || (role == Role::master && one_copy);
  const bool is_state =
      role == Role::moment1 || role == Role::moment2 || (role == Role::master && !one_copy);
  if (is_parameter && contains(parallel.offload, "parameters")) return away;
  if (is_state && contains(parallel.offload, "optimizer")) return away;
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

// Layers take turns with two windows, the others have one each; [unit].
std::vector<int> ParameterStore::add_windows(const char* name, MemoryClass memory_class,
                                             DType dtype) {
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
      if (turns.size() < 2)
        turns.push_back(add("layer_" + std::to_string(turns.size()), largest_layer));
      windows.push_back(-1);
    } else {
      windows.push_back(add(unit.kind == UnitKind::token_embedding      ? "wte"
                            : unit.kind == UnitKind::position_embedding ? "wpe"
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
  if (weight_windows_.empty()) return;
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
    builder_.emit(
        flat_transfer(OpKind::load, zero_stage_ == 3 ? u.shard : u.size(), shard, target));
    shard = target;
  }
  if (zero_stage_ == 3)
    builder_.emit(flat_message(OpKind::all_gather, QueueId::data, Axis::shard, u.size(),
                               dtype_bytes(Role::working), shard, {window}));
}

Operand ParameterStore::weight(int tensor) const {
  const FlatSpace& space = builder_.plan().space;
  const int local = space.find(tensor);
  GPTBENCH_CHECK(local >= 0, builder_.plan().tensors[static_cast<size_t>(tensor)].name +
                                 " is held by this rank");
  const int64_t begin = space.placements[static_cast<size_t>(local)].begin;
  const int unit = space.unit_of[static_cast<size_t>(local)];
  if (weight_windows_.empty()) return {builder_.plan().representation(Role::working).buffer, begin};
  return {weight_windows_[static_cast<size_t>(unit)],
          begin - space.units[static_cast<size_t>(unit)].begin};
}

Operand ParameterStore::gradient(int tensor) const {
  const FlatSpace& space = builder_.plan().space;
  const int local = space.find(tensor);
  const int64_t begin = space.placements[static_cast<size_t>(local)].begin;
  const int unit = space.unit_of[static_cast<size_t>(local)];
  if (gradient_windows_.empty())
    return {builder_.plan().representation(Role::gradient).buffer, begin};
  return {gradient_windows_[static_cast<size_t>(unit)],
          begin - space.units[static_cast<size_t>(unit)].begin};
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

void ParameterStore::open_gradient(int unit) {
  if (!reduce_each_) return;  // accumulates over the step, zeroed where it begins
  const Unit& u = builder_.plan().space.units[static_cast<size_t>(unit)];
  builder_.emit(flat_op(OpKind::fill_zero, u.size(), {}, {whole_gradient(unit)}));
}

Operand ParameterStore::whole_gradient(int unit) const {
  const Plan& plan = builder_.plan();
  if (!gradient_windows_.empty()) return {gradient_windows_[static_cast<size_t>(unit)]};
  return {plan.representation(Role::gradient).buffer,
          plan.space.units[static_cast<size_t>(unit)].begin};
}

void ParameterStore::close_gradient(int unit, bool last) {
  if (!reduce_each_ && !last) return;
  reduce_replicated(unit);
  emit_reduction(unit);
}

// Under sequence parallelism each tensor-parallel rank has seen its own rows alone, so that
// gradients of replicated tensors are partial sums.
void ParameterStore::reduce_replicated(int unit) {
  const Plan& plan = builder_.plan();
  const Operand whole = whole_gradient(unit);
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const bool partial = u.kind == UnitKind::layer || u.kind == UnitKind::final_norm;
  const int64_t elements = u.replicated_end - u.replicated_begin;
  if (!plan.config.parallel.sequence_parallel || !partial || elements == 0) return;
  const Operand part{whole.buffer, whole.offset + u.replicated_begin - u.begin};
  builder_.emit(flat_message(OpKind::all_reduce, QueueId::tensor, Axis::tensor, elements,
                             size_of(builder_.S()), part, part));
}

void ParameterStore::emit_reduction(int unit) {
  const Plan& plan = builder_.plan();
  const Operand whole = whole_gradient(unit);
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const int64_t bytes = size_of(builder_.S());
  if (plan.grid.size_of(Axis::zero) == 1) return;
  if (!reduce_each_ && zero_stage_ == 0) {
    builder_.emit(
        flat_message(OpKind::all_reduce, QueueId::data, sum_axis_, u.size(), bytes, whole, whole));
    return;
  }
  Operand target = shard_operand(Role::gradient_shard, unit);
  if (reduce_each_) {
    target = {reduced_[static_cast<size_t>(next_reduced_)]};
    next_reduced_ = (next_reduced_ + 1) % static_cast<int>(reduced_.size());
    to_accumulate_.push_back(unit);
  }
  builder_.emit(flat_message(OpKind::reduce_scatter, QueueId::data, Axis::shard, u.size(), bytes,
                             whole, target));
  if (plan.grid.size_of(Axis::replica) > 1)
    builder_.emit(flat_message(OpKind::all_reduce, QueueId::data, Axis::replica, u.shard, bytes,
                               target, target));
  // Two shards may be on the way; the earlier one is added while the later one travels.
  if (reduce_each_ && to_accumulate_.size() == reduced_.size()) accumulate_oldest();
}

void ParameterStore::accumulate_oldest() {
  const size_t on_the_way = to_accumulate_.size();
  const int unit = to_accumulate_.front();
  to_accumulate_.erase(to_accumulate_.begin());
  const size_t buffer =
      (static_cast<size_t>(next_reduced_) + reduced_.size() - on_the_way) % reduced_.size();
  builder_.emit(flat_op(OpKind::accumulate,
                        builder_.plan().space.units[static_cast<size_t>(unit)].shard,
                        {{reduced_[buffer]}}, {shard_operand(Role::gradient_shard, unit)}));
}

void ParameterStore::flush_gradients() {
  while (!to_accumulate_.empty()) accumulate_oldest();
}

}  // namespace gptbench
