// The programs around the micro-batches: zeroing, the gradient's norm, AdamW, and what ZeRO moves.
#include <algorithm>
#include <string>
#include <utility>

#include "plan/parameter_store.h"

namespace gptbench {

void ParameterStore::emit_begin_step() {
  const Plan& plan = builder_.plan();
  if (plan.has(Role::gradient) && !reduce_each_)
    builder_.emit(
        ops::fill_zero(flat(plan.space.elements), {plan.representation(Role::gradient).buffer}));
  if (reduce_each_)
    builder_.emit(ops::fill_zero(flat(plan.space.shard_elements),
                                 {plan.representation(Role::gradient_shard).buffer}));
  builder_.emit(ops::fill_zero(flat(plan.buffers[static_cast<size_t>(plan.scalars)].elements),
                               {plan.scalars}));
  const auto scalar = [&](Scalar which) {
    return Operand{plan.scalars, static_cast<int64_t>(which)};
  };
  builder_.emit(ops::load_control(scalar(Scalar::stop_votes),
                                  plan.lengths >= 0 ? scalar(Scalar::target_weight) : Operand{}));
  emit_fp8_copies();
}

void ParameterStore::emit_end_step() {
  const Plan& plan = builder_.plan();
  emit_tied_embedding();
  if (reduce_each_ && zero_stage_ == 0)
    for (size_t u = 0; u < plan.space.units.size(); ++u)
      builder_.emit(ops::all_gather(
          {QueueId::data, Axis::shard}, flat(plan.space.units[u].size()), size_of(gradient_type_),
          shard_operand(Role::gradient_shard, static_cast<int>(u)),
          {plan.representation(Role::gradient).buffer, plan.space.units[u].begin}));
  emit_norms();
  emit_updates();
}

// First and last stage hold a copy each of the tied embedding; its gradient is the sum of both.
void ParameterStore::emit_tied_embedding() {
  const Plan& plan = builder_.plan();
  const int unit = plan.space.find_unit(UnitKind::token_embedding);
  if (plan.grid.pipeline == 1 || unit < 0 || !plan.shape.family.shares_embedding()) return;
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const bool shards = plan.has(Role::gradient_shard);
  const Operand gradient =
      shards ? shard_operand(Role::gradient_shard, unit) : whole_gradient(unit);
  builder_.emit(ops::all_reduce({QueueId::data, Axis::embedding}, flat(shards ? u.shard : u.size()),
                                size_of(gradient_type_), gradient));
}

// norm^2 = sum over units, shards, then the ranks of a replica. Each unit (with run.deterministic
// each shard of it) has a partial sum of its own in f64, added up in one order whoever formed it.
void ParameterStore::emit_norms() {
  const Plan& plan = builder_.plan();
  const bool sharded = zero_stage_ >= 1;
  const bool by_shard = plan.config.run.deterministic && plan.grid.size_of(Axis::zero) > 1;
  const Role role = sharded ? Role::gradient_shard : Role::gradient;
  const int buffer = plan.representation(role).buffer;
  const int64_t entries_a_unit = by_shard ? shards_ : 1;
  const auto entry = [&](size_t unit, int64_t shard) {
    return Operand{plan.scalars, num_scalars + static_cast<int64_t>(unit) * entries_a_unit +
                                     (by_shard ? shard : 0)};
  };
  // [begin, end) of flat space, cut to shard `s` of unit `u` where shards count apart.
  const auto add = [&](size_t u, int64_t s, int64_t begin, int64_t end) {
    const Unit& unit = plan.space.units[u];
    if (sharded || by_shard) {
      begin = std::max(begin, unit.begin + s * unit.shard);
      end = std::min(end, unit.begin + (s + 1) * unit.shard);
    }
    if (begin >= end) return;
    const int64_t at = sharded ? unit.shard_begin + begin - (unit.begin + s * unit.shard) : begin;
    builder_.emit(ops::squared_norm(end - begin, {buffer, at}, entry(u, s)));
  };
  const bool counts_replicated = plan.at.tensor == 0;
  for (size_t u = plan.space.units.size(); u-- > 0;) {  // as backward completes them
    const Unit& unit = plan.space.units[u];
    if (!unit.counted) continue;
    const int64_t first = sharded ? shard_rank_ : 0;
    const int64_t last = sharded ? shard_rank_ : by_shard ? shards_ - 1 : 0;
    for (int64_t s = first; s <= last; ++s) {
      if (counts_replicated) {
        add(u, s, unit.begin, unit.end);
      } else {
        add(u, s, unit.begin, unit.replicated_begin);
        add(u, s, unit.replicated_end, unit.end);
      }
    }
  }
  // Losses and votes to stop are adjacent scalars: one message.
  if (plan.grid.size() > 1) {
    const bool masked = plan.shape.family.head == HeadKind::masked;
    const Scalar first = masked ? Scalar::sentence_loss_sum : Scalar::loss_sum;
    const Operand loss{plan.scalars, static_cast<int64_t>(first)};
    builder_.emit(ops::all_reduce({QueueId::tensor, Axis::world}, flat(masked ? 3 : 2),
                                  size_of(DType::f64), loss));
  }
  const int64_t entries = static_cast<int64_t>(plan.space.units.size()) * entries_a_unit;
  const Operand all{plan.scalars, num_scalars};
  const auto scalar = [&](Scalar which) {
    return Operand{plan.scalars, static_cast<int64_t>(which)};
  };
  const Operand norm2 = scalar(Scalar::grad_norm2);
  const auto sum_over = [&](Axis axis, int64_t elements, Operand data) {
    if (plan.grid.size_of(axis) == 1) return;
    builder_.emit(
        ops::all_reduce({QueueId::tensor, axis}, flat(elements), size_of(DType::f64), data));
  };
  if (sharded && by_shard)
    sum_over(Axis::shard, entries, all);  // every entry has one summand that is not 0
  builder_.emit(ops::sum_scalars(entries, all, norm2));
  if (sharded && !by_shard) sum_over(Axis::shard, 1, norm2);
  sum_over(Axis::model, 1, norm2);
  const bool scaled = plan.loss_scale >= 0;
  if (scaled) {
    ops::LossScaleOperands operands;
    operands.state = {plan.loss_scale};
    operands.norm2 = norm2;
    operands.loss_scale = scalar(Scalar::loss_scale);
    operands.next_loss_scale = scalar(Scalar::next_loss_scale);
    operands.skip = scalar(Scalar::skip);
    builder_.emit(ops::loss_scale(operands));
  }
  builder_.emit(ops::clip_factor(norm2, scalar(Scalar::loss_sum),
                                 scaled ? scalar(Scalar::loss_scale) : Operand{},
                                 scalar(Scalar::clip_factor)));
}

// Two windows for each role that AdamW touches and that resides elsewhere.
void ParameterStore::add_transfer_windows() {
  const Plan& plan = builder_.plan();
  int64_t largest = 0;
  for (const Unit& unit : plan.space.units)
    largest = std::max(largest, zero_stage_ >= 1 ? unit.shard : unit.size());
  for (const auto& [role, name] :
       {std::pair{Role::working, "working"}, std::pair{Role::master, "master"},
        std::pair{Role::moment1, "moment1"}, std::pair{Role::moment2, "moment2"}}) {
    if (!is_offloaded(role)) continue;
    if (role == Role::master && one_copy_) {
      transfer_windows_[role] = transfer_windows_.at(Role::working);
      continue;
    }
    for (int i = 0; i < 2; ++i)
      transfer_windows_[role][static_cast<size_t>(i)] = builder_.add_buffer(
          "transfer." + std::string(name) + "." + std::to_string(i), MemoryClass::optimizer_state,
          Lifetime::run, plan.representation(role).dtype, largest);
  }
}

// Place of flat element `flat` of a unit for AdamW: in the copy itself, or in the window that holds
// the unit.
Operand ParameterStore::state_operand(Role role, int unit, int64_t flat) const {
  const Plan& plan = builder_.plan();
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const Representation& copy = plan.representation(role);
  const int64_t begin = zero_stage_ >= 1 ? u.begin + shard_rank_ * u.shard : u.begin;
  const auto window = transfer_windows_.find(role);
  if (window != transfer_windows_.end())
    return {window->second[static_cast<size_t>(unit % 2)], flat - begin};
  return {copy.buffer, copy.extent == Extent::shards ? u.shard_begin + flat - begin : flat};
}

// Brings the offloaded state of a unit to its windows, or takes it back.
void ParameterStore::emit_transfers(OpKind kind, int unit) {
  const Plan& plan = builder_.plan();
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  for (const auto& [role, windows] : transfer_windows_) {
    if (role == Role::working && one_copy_) continue;             // moves as master
    if (role == Role::working && kind == OpKind::load) continue;  // AdamW assigns it
    const Representation& copy = plan.representation(role);
    const Operand away{copy.buffer, copy.extent == Extent::shards ? u.shard_begin : u.begin};
    const Operand window{windows[static_cast<size_t>(unit % 2)]};
    const int64_t elements = zero_stage_ >= 1 ? u.shard : u.size();
    builder_.emit(kind == OpKind::load ? ops::load(flat(elements), away, window)
                                       : ops::store(flat(elements), window, away));
  }
}

void ParameterStore::emit_updates() {
  const Plan& plan = builder_.plan();
  const bool sharded = zero_stage_ >= 1;
  const Operand factor{plan.scalars, static_cast<int64_t>(Scalar::clip_factor)};
  const Operand skip =
      plan.loss_scale < 0 ? Operand{} : Operand{plan.scalars, static_cast<int64_t>(Scalar::skip)};
  const Role gradient_role = sharded ? Role::gradient_shard : Role::gradient;
  const int units = static_cast<int>(plan.space.units.size());
  emit_transfers(OpKind::load, 0);
  for (int u = 0; u < units; ++u) {
    if (u + 1 < units) emit_transfers(OpKind::load, u + 1);
    const Unit& unit = plan.space.units[static_cast<size_t>(u)];
    const int64_t begin = sharded ? unit.begin + shard_rank_ * unit.shard : unit.begin;
    const int64_t end = sharded ? begin + unit.shard : unit.end;
    const auto update = [&](int64_t from, int64_t to, double weight_decay) {
      from = std::max(from, begin);
      to = std::min(to, end);
      if (from >= to) return;
      ops::AdamWOperands operands;
      operands.gradient = state_operand(gradient_role, u, from);
      operands.clip_factor = factor;
      operands.skip = skip;
      operands.master = state_operand(Role::master, u, from);
      operands.moment1 = state_operand(Role::moment1, u, from);
      operands.moment2 = state_operand(Role::moment2, u, from);
      if (!one_copy_) operands.working = state_operand(Role::working, u, from);
      builder_.emit(ops::adamw({to - from, weight_decay}, operands));
    };
    update(unit.begin, unit.decay_end, plan.config.optimizer.weight_decay);
    update(unit.decay_end, unit.end, 0.0);
    emit_transfers(OpKind::store, u);
    if (sharded && zero_stage_ < 3) {
      const Operand part{plan.representation(Role::working).buffer, begin};
      builder_.emit(ops::all_gather({QueueId::data, Axis::shard}, flat(unit.size()),
                                    dtype_bytes(Role::working), part, {part.buffer, unit.begin}));
    }
  }
}

}  // namespace gptbench
