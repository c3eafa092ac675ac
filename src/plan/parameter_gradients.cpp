// Gradients of ParameterStore: from what a micro-batch forms to what AdamW reads.
#include "plan/parameter_store.h"

namespace gptbench {

Operand ParameterStore::gradient(int tensor) const {
  if (tensor < 0) return {};
  const FlatSpace& space = builder_.plan().space;
  const int local = space.find(tensor);
  const int64_t begin = space.placements[static_cast<size_t>(local)].begin;
  const int unit = space.unit_of[static_cast<size_t>(local)];
  const Operand whole = gradient_target(unit);
  return {whole.buffer, whole.offset + begin - space.units[static_cast<size_t>(unit)].begin};
}

// What kernels accumulate to.
Operand ParameterStore::gradient_target(int unit) const {
  return sum_windows_.empty() ? whole_gradient(unit)
                              : Operand{sum_windows_[static_cast<size_t>(unit)]};
}

// What is kept or reduced, in its type.
Operand ParameterStore::whole_gradient(int unit) const {
  const Plan& plan = builder_.plan();
  if (!gradient_windows_.empty()) return {gradient_windows_[static_cast<size_t>(unit)]};
  return {plan.representation(Role::gradient).buffer,
          plan.space.units[static_cast<size_t>(unit)].begin};
}

void ParameterStore::open_gradient(int unit) {
  // Else it accumulates over the step, zeroed where it begins.
  if (unit < 0 || (!reduce_each_ && sum_windows_.empty())) return;
  const Unit& u = builder_.plan().space.units[static_cast<size_t>(unit)];
  builder_.emit(ops::fill_zero(flat(u.size()), gradient_target(unit)));
}

void ParameterStore::fold_gradient(int unit) {
  if (unit < 0) return;
  if (!sum_windows_.empty()) {
    const Unit& u = builder_.plan().space.units[static_cast<size_t>(unit)];
    ConvertSize size{flat(u.size())};
    size.accumulate = !reduce_each_;
    Op op = ops::convert(size, gradient_target(unit), whole_gradient(unit));
    if (u.kind == UnitKind::layer) op.layer = static_cast<int32_t>(u.layer);
    builder_.emit(op);
  }
  if (!reduce_each_) return;
  reduce_replicated(unit);
  emit_reduction(unit);
}

void ParameterStore::reduce_gradient(int unit, bool last) {
  if (unit < 0 || reduce_each_ || !last) return;
  reduce_replicated(unit);
  emit_reduction(unit);
}

// Under sequence parallelism each tensor-parallel rank has seen its own rows alone, so that
// gradients of replicated tensors are partial sums.
void ParameterStore::reduce_replicated(int unit) {
  const Plan& plan = builder_.plan();
  const Operand whole = whole_gradient(unit);
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const bool partial =
      u.kind == UnitKind::layer || u.kind == UnitKind::final_norm || u.kind == UnitKind::head;
  const int64_t elements = u.replicated_end - u.replicated_begin;
  if (!plan.config.parallel.sequence_parallel || !partial || elements == 0) return;
  const Operand part{whole.buffer, whole.offset + u.replicated_begin - u.begin};
  builder_.emit(ops::all_reduce({QueueId::tensor, Axis::tensor}, flat(elements),
                                size_of(gradient_type_), part));
}

void ParameterStore::emit_reduction(int unit) {
  const Plan& plan = builder_.plan();
  const Operand whole = whole_gradient(unit);
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const int64_t bytes = size_of(gradient_type_);
  if (plan.grid.size_of(Axis::zero) == 1) return;
  if (!reduce_each_ && zero_stage_ == 0) {
    builder_.emit(ops::all_reduce({QueueId::data, sum_axis_}, flat(u.size()), bytes, whole));
    return;
  }
  Operand target = shard_operand(Role::gradient_shard, unit);
  if (reduce_each_) {
    target = {reduced_[static_cast<size_t>(next_reduced_)]};
    next_reduced_ = (next_reduced_ + 1) % static_cast<int>(reduced_.size());
    to_accumulate_.push_back(unit);
  }
  builder_.emit(
      ops::reduce_scatter({QueueId::data, Axis::shard}, flat(u.size()), bytes, whole, target));
  if (plan.grid.size_of(Axis::replica) > 1)
    builder_.emit(ops::all_reduce({QueueId::data, Axis::replica}, flat(u.shard), bytes, target));
  // Two shards may be on the way; the earlier one is added while the later one travels.
  if (reduce_each_ && to_accumulate_.size() == reduced_.size()) accumulate_oldest();
}

void ParameterStore::accumulate_oldest() {
  const size_t on_the_way = to_accumulate_.size();
  const int unit = to_accumulate_.front();
  to_accumulate_.erase(to_accumulate_.begin());
  const size_t buffer =
      (static_cast<size_t>(next_reduced_) + reduced_.size() - on_the_way) % reduced_.size();
  const Operand reduced{reduced_[buffer]}, shard = shard_operand(Role::gradient_shard, unit);
  ConvertSize size{flat(builder_.plan().space.units[static_cast<size_t>(unit)].shard)};
  size.accumulate = true;
  // Statistics' own type has a kernel that only adds.
  builder_.emit(gradient_type_ == builder_.S() ? ops::accumulate(size.count, reduced, shard)
                                               : ops::convert(size, reduced, shard));
}

void ParameterStore::flush_gradients() {
  while (!to_accumulate_.empty()) accumulate_oldest();
}

}  // namespace gptbench
