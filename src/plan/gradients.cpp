#include "plan/gradients.h"

namespace gptbench {

Operand Gradients::of(int tensor) const {
  if (tensor < 0) return {};
  const ParameterLayout::Place place = layout_.place_of(tensor);
  Operand operand = layout_.summed_gradient(place.unit);
  operand.offset += place.offset;
  return operand;
}

GradientSum Gradients::sum_of(int tensor) const {
  if (!layout_.assigned.contains(tensor)) return GradientSum::adds;
  const bool each = layout_.forms_each() || layout_.plan.micro_batches.size() == 1;
  return each ? GradientSum::begins_micro_batch : GradientSum::begins_step;
}

void Gradients::open(int unit, bool matrices) {
  if (unit < 0 || !layout_.forms_each()) return;  // else it accumulates over the step
  const Unit& u = layout_.unit(unit);
  const auto zero = [&](int64_t begin, int64_t end) {
    Operand part = layout_.summed_gradient(unit);
    part.offset += begin - u.begin;
    builder_.emit(ops::fill_zero(flat(end - begin), part));
  };
  if (matrices)
    layout_.assigned.for_each_other(u.begin, u.end, zero);
  else
    zero(u.begin, u.end);
}

void Gradients::fold(int unit) {
  if (unit < 0) return;
  if (!layout_.windows.sum.empty()) {
    const Unit& u = layout_.unit(unit);
    ConvertSize size{flat(u.size())};
    size.accumulate = !layout_.reduces_each;
    Op op = ops::convert(size, layout_.summed_gradient(unit), layout_.whole_gradient(unit));
    op.layer = static_cast<int32_t>(u.layer);
    builder_.emit(op);
  }
  if (layout_.reduces_each) emit_reduction(unit);
}

void Gradients::reduce(int unit, bool last) {
  if (unit >= 0 && reduces_once() && last) emit_reduction(unit);
}

// Under sequence parallelism each tensor-parallel rank has seen its own rows alone, so that
// gradients of replicated tensors are partial sums.
void Gradients::reduce_replicated(int unit) {
  const Unit& u = layout_.unit(unit);
  const bool partial =
      u.kind == UnitKind::layer || u.kind == UnitKind::final_norm || u.kind == UnitKind::head;
  const int64_t elements = u.replicated_end - u.replicated_begin;
  if (!layout_.plan.config.parallel.sequence_parallel || !partial || elements == 0) return;
  Operand part = layout_.whole_gradient(unit);
  part.offset += u.replicated_begin - u.begin;
  builder_.emit(ops::all_reduce({QueueId::tensor, Axis::tensor}, flat(elements),
                                size_of(layout_.types.gradient), part));
}

void Gradients::emit_reduction(int unit) {
  reduce_replicated(unit);
  const Grid& grid = layout_.plan.grid;
  const Operand whole = layout_.whole_gradient(unit);
  const Unit& u = layout_.unit(unit);
  const int64_t bytes = size_of(layout_.types.gradient);
  if (grid.size_of(Axis::zero) == 1) return;
  if (!layout_.reduces_each && !layout_.sharded()) {
    const Axis axis = grid.context > 1 ? Axis::zero : Axis::data;
    builder_.emit(ops::all_reduce({QueueId::data, axis}, flat(u.size()), bytes, whole));
    return;
  }
  Operand target = layout_.shard(Role::gradient_shard, unit);
  if (layout_.reduces_each) {
    target = {layout_.reduced[next_reduced_]};
    next_reduced_ = (next_reduced_ + 1) % layout_.reduced.size();
    to_accumulate_.push_back(unit);
  }
  builder_.emit(
      ops::reduce_scatter({QueueId::data, Axis::shard}, flat(u.size()), bytes, whole, target));
  if (grid.size_of(Axis::replica) > 1)
    builder_.emit(ops::all_reduce({QueueId::data, Axis::replica}, flat(u.shard), bytes, target));
  // Two shards may be in flight; the earlier one is added while the later one travels.
  if (layout_.reduces_each && to_accumulate_.size() == layout_.reduced.size()) accumulate_oldest();
}

void Gradients::accumulate_oldest() {
  const std::vector<int>& buffers = layout_.reduced;
  const size_t in_flight = to_accumulate_.size();
  const int unit = to_accumulate_.front();
  to_accumulate_.erase(to_accumulate_.begin());
  const Operand reduced{buffers[(next_reduced_ + buffers.size() - in_flight) % buffers.size()]};
  const Operand shard = layout_.shard(Role::gradient_shard, unit);
  ConvertSize size{flat(layout_.unit(unit).shard)};
  size.accumulate = true;
  // Statistics' own type has a kernel that only adds.
  builder_.emit(layout_.types.gradient == builder_.S() ? ops::accumulate(size.count, reduced, shard)
                                                       : ops::convert(size, reduced, shard));
}

void Gradients::flush() {
  while (!to_accumulate_.empty()) accumulate_oldest();
}

}  // namespace gptbench
