#include "plan/step_programs.h"

#include <algorithm>

namespace gptbench {
namespace {

class EndStep {
 public:
  EndStep(PlanBuilder& builder, const ParameterLayout& layout)
      : builder_(builder),
        layout_(layout),
        plan_(builder.plan()),
        by_shard_(plan_.config.run.deterministic && plan_.grid.size_of(Axis::zero) > 1),
        of_own_shard_(by_shard_ || layout.sharded()),
        sums_per_unit_(by_shard_ ? plan_.space.num_shards : 1) {}

  void emit() {
    const int units = static_cast<int>(plan_.space.units.size());
    emit_tied_embedding();
    if (layout_.reduces_each && !layout_.sharded())
      for (int u = 0; u < units; ++u)
        builder_.emit(ops::all_gather({QueueId::data, Axis::shard}, flat(layout_.unit(u).size()),
                                      size_of(layout_.types.gradient),
                                      layout_.shard(Role::gradient_shard, u),
                                      layout_.whole_gradient(u)));
    emit_squared_norms();
    emit_norm();
    if (layout_.updates_on_host)
      builder_.emit(
          ops::store(flat(num_scalars), {plan_.buffer_index.scalars}, {layout_.host_scalars}));
    emit_fetch(0);
    for (int u = 0; u < units; ++u) {
      if (u + 1 < units) emit_fetch(u + 1);
      emit_update(u);
    }
  }

 private:
  // First and last stage hold a copy each of the tied embedding; its gradient is the sum of both.
  void emit_tied_embedding() {
    const int unit = plan_.space.find_unit(UnitKind::token_embedding);
    if (plan_.grid.pipeline == 1 || unit < 0 || !plan_.shape.family.shares_embedding()) return;
    const Unit& u = layout_.unit(unit);
    const bool shards = plan_.has(Role::gradient_shard);
    const Operand gradient =
        shards ? layout_.shard(Role::gradient_shard, unit) : layout_.whole_gradient(unit);
    builder_.emit(ops::all_reduce({QueueId::data, Axis::embedding},
                                  flat(shards ? u.shard : u.size()),
                                  size_of(layout_.types.gradient), gradient));
  }

  // norm^2 = sum over units, shards, then the ranks of a replica. Each unit (with run.deterministic
  // each shard of it, on the rank that reduces it) has a partial sum of its own in f64, added up in
  // one order whoever formed it.
  void emit_squared_norms() {
    for (size_t u = plan_.space.units.size(); u-- > 0;) {  // as backward completes them
      const Unit& unit = plan_.space.units[u];
      if (!unit.counted) continue;
      if (plan_.at.tensor == 0) {
        emit_squared_norm(u, unit.begin, unit.end);
      } else {
        emit_squared_norm(u, unit.begin, unit.replicated_begin);
        emit_squared_norm(u, unit.replicated_end, unit.end);
      }
    }
  }

  // [begin, end) of flat space, cut to this rank's shard of unit `u` where it has the sum of that
  // alone.
  void emit_squared_norm(size_t u, int64_t begin, int64_t end) {
    const Unit& unit = plan_.space.units[u];
    const int64_t s = of_own_shard_ ? layout_.shard_rank : 0, shard = unit.begin + s * unit.shard;
    if (of_own_shard_) {
      begin = std::max(begin, shard);
      end = std::min(end, shard + unit.shard);
    }
    if (begin >= end) return;
    const Role role = of_own_shard_ ? Role::gradient_shard : Role::gradient;
    const int64_t at = of_own_shard_ ? unit.shard_begin + begin - shard : begin;
    const int64_t sum = static_cast<int64_t>(u) * sums_per_unit_ + (by_shard_ ? s : 0);
    builder_.emit(ops::squared_norm(end - begin, {plan_.representation(role).buffer, at},
                                    {plan_.buffer_index.scalars, num_scalars + sum}));
  }

  void emit_sum(Axis axis, int64_t elements, Operand data, QueueId queue = QueueId::tensor) {
    if (plan_.grid.size_of(axis) > 1)
      builder_.emit(ops::all_reduce({queue, axis}, flat(elements), size_of(DType::f64), data));
  }

  // From the partial sums to the factor of AdamW, with the losses of all ranks.
  void emit_norm() {
    // Losses and votes to stop are adjacent scalars: one message.
    const bool masked = plan_.shape.family.head == HeadKind::masked;
    emit_sum(Axis::world, masked ? 3 : 2,
             plan_.scalar(masked ? Scalar::sentence_loss_sum : Scalar::loss_sum));
    const int64_t sums = static_cast<int64_t>(plan_.space.units.size()) * sums_per_unit_;
    const Operand all{plan_.buffer_index.scalars, num_scalars},
        norm2 = plan_.scalar(Scalar::grad_norm2);
    // One summand each is not 0. Messages of the gradient may still be on their way along this
    // axis, which all ranks must use in one order: the sum goes behind them.
    if (by_shard_) emit_sum(Axis::shard, sums, all, QueueId::data);
    builder_.emit(ops::sum_scalars(sums, all, norm2));
    if (of_own_shard_ && !by_shard_) emit_sum(Axis::shard, 1, norm2, QueueId::data);
    emit_sum(Axis::model, 1, norm2);
    const bool scaled = plan_.buffer_index.loss_scale >= 0;
    const Operand loss_scale = scaled ? plan_.scalar(Scalar::loss_scale) : Operand{};
    if (scaled)
      builder_.emit(ops::loss_scale({{plan_.buffer_index.loss_scale},
                                     norm2,
                                     loss_scale,
                                     plan_.scalar(Scalar::next_loss_scale),
                                     plan_.scalar(Scalar::skip)}));
    builder_.emit(ops::clip_factor(norm2, plan_.scalar(Scalar::loss_sum), loss_scale,
                                   plan_.scalar(Scalar::clip_factor)));
  }

  // This rank's part of a unit where the copy resides, and where AdamW finds it.
  Operand resident(Role role, int u) const {
    return layout_.resident(role, u, layout_.part_begin(u));
  }
  Operand state(Role role, int u) const { return layout_.state(role, u, layout_.part_begin(u)); }

  // Brings what AdamW reads of a unit, and resides elsewhere, to where AdamW works.
  void emit_fetch(int u) {
    const ElementCount count = flat(layout_.part_elements(u));
    if (layout_.updates_on_host) {
      const Role gradient = layout_.reduced_gradient();
      builder_.emit(ops::store(count, resident(gradient, u), state(gradient, u)));
      return;
    }
    for (const auto& each : layout_.offload_windows)
      if (each.first != Role::working)  // assigned, or moves as master
        builder_.emit(ops::load(count, resident(each.first, u), state(each.first, u)));
  }

  // Takes what AdamW has assigned to where it resides.
  void emit_return(int u) {
    const ElementCount count = flat(layout_.part_elements(u));
    if (layout_.updates_on_host) {
      if (layout_.is_offloaded(Role::working)) return;
      const Role assigned = layout_.one_type ? Role::master : Role::working;
      builder_.emit(ops::load(count, state(assigned, u), resident(Role::working, u)));
      return;
    }
    for (const auto& each : layout_.offload_windows)
      if (each.first != Role::working || !layout_.one_copy)
        builder_.emit(ops::store(count, state(each.first, u), resident(each.first, u)));
  }

  // AdamW on this rank's part of a unit, which then goes to where it resides and to other ranks.
  void emit_update(int u) {
    const Unit& unit = layout_.unit(u);
    const int64_t begin = layout_.part_begin(u), end = begin + layout_.part_elements(u);
    const auto update = [&](int64_t from, int64_t to, double weight_decay) {
      from = std::max(from, begin);
      to = std::min(to, end);
      if (from >= to) return;
      const auto state = [&](Role role) { return layout_.state(role, u, from); };
      ops::AdamWOperands operands;
      const auto scalar = [&](Scalar which) {
        Operand operand = plan_.scalar(which);
        if (layout_.updates_on_host) operand.buffer = layout_.host_scalars;
        return operand;
      };
      operands.gradient = state(layout_.reduced_gradient());
      operands.clip_factor = scalar(Scalar::clip_factor);
      operands.skip = plan_.buffer_index.loss_scale < 0 ? Operand{} : scalar(Scalar::skip);
      operands.master = state(Role::master);
      operands.moment1 = state(Role::moment1);
      operands.moment2 = state(Role::moment2);
      if (!layout_.one_type) operands.working = state(Role::working);
      Op op = ops::adamw({to - from, weight_decay}, operands);
      if (layout_.updates_on_host) op.queue = QueueId::host_kernels;
      builder_.emit(op);
    };
    update(unit.begin, unit.decay_end, plan_.config.optimizer.weight_decay);
    update(unit.decay_end, unit.end, 0.0);
    emit_return(u);
    if (!layout_.sharded() || layout_.zero_stage == 3) return;
    const Operand part{plan_.representation(Role::working).buffer, begin};
    builder_.emit(ops::all_gather({QueueId::data, Axis::shard}, flat(unit.size()),
                                  size_of(layout_.types.working), part, {part.buffer, unit.begin}));
  }

  PlanBuilder& builder_;
  const ParameterLayout& layout_;
  const Plan& plan_;
  bool by_shard_;      // shards have partial sums of their own
  bool of_own_shard_;  // this rank forms those of its shard
  int64_t sums_per_unit_;
};

}  // namespace

void emit_begin_step(PlanBuilder& builder, const ParameterLayout& layout, Weights& weights) {
  const Plan& plan = builder.plan();
  const auto zero = [&](int buffer, int64_t begin, int64_t end) {
    builder.emit(ops::fill_zero(flat(end - begin), {buffer, begin}));
  };
  const auto zero_gradient = [&](int64_t begin, int64_t end) {
    zero(plan.representation(Role::gradient).buffer, begin, end);
  };
  const bool each = layout.reduces_each;
  if (!layout.forms_each())
    layout.assigned.for_each_other(0, plan.space.elements, zero_gradient);
  else if (plan.has(Role::gradient) && !each)
    zero_gradient(0, plan.space.elements);
  if (each) zero(plan.representation(Role::gradient_shard).buffer, 0, plan.space.shard_elements);
  zero(plan.buffer_index.scalars, 0,
       plan.buffers[static_cast<size_t>(plan.buffer_index.scalars)].elements);
  builder.emit(ops::load_control(
      plan.scalar(Scalar::stop_votes),
      plan.buffer_index.lengths >= 0 ? plan.scalar(Scalar::target_weight) : Operand{}));
  weights.emit_fp8_copies();
}

void emit_end_step(PlanBuilder& builder, const ParameterLayout& layout) {
  EndStep(builder, layout).emit();
}

}  // namespace gptbench
