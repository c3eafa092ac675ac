#include "engine/op_call.h"

#include "engine/step_inputs.h"
#include "plan/context.h"

namespace gptbench {

OpCall::OpCall(Resources& resources, StepInputs& inputs, const Op& op_, const Task& task_,
               int64_t first_row)
    : op(op_),
      task(task_),
      held_rows(task.sequences.count * resources.plan.T_local()),
      rows(rows_of(op, held_rows - first_row)),
      resources_(resources),
      inputs_(inputs),
      first_row_(first_row) {}

Address OpCall::address(Slot name, int64_t elements) const {
  Operand operand = at_row(op[name], first_row_);
  operand.offset += elements;
  return {resources_.arena.address(operand, task)};
}

int64_t OpCall::file_offset(Slot name) const {
  return resources_.arena.offset(op[name], task);
}

int64_t OpCall::columns() const {
  const RowSize* size = std::get_if<RowSize>(&op.size);
  return size != nullptr ? size->columns : 0;
}

int64_t OpCall::elements() const {
  if (const auto* size = std::get_if<ElementCount>(&op.size)) return size->of(rows);
  if (const auto* size = std::get_if<UpdateSize>(&op.size)) return size->elements;
  return rows * columns();
}

bool OpCall::accumulates_gradient() const {
  return first_row_ > 0 || !assigns_gradient(op, task.micro_batch);
}

Workspace OpCall::workspace() const {
  const Operand scratch{plan().buffer_index.scratch};
  if (scratch.buffer < 0) return {};
  return {resources_.arena.address(scratch), resources_.buffer_of(scratch).elements};
}

Dropout OpCall::dropout() const {
  Dropout dropout;
  dropout.rate = inputs_.constants().dropout_rate();
  dropout.seed = inputs_.constants().dropout_seed();
  dropout.instance = static_cast<uint32_t>((op.layer + 1) * 8 + op.site);
  dropout.seed_in_memory = inputs_.dropout_seed_in_memory();
  return dropout;
}

Positions OpCall::positions_of(int64_t context_rank) const {
  return held_positions(plan().shape.T, plan().grid.context, context_rank);
}

// Where the rows of this rank's part of a micro-batch lie in the global batch.
GlobalRows OpCall::global_rows() const {
  GlobalRows global;
  global.first_sequence = task.sequences.first;
  global.first_row = op.row_div > 1 ? plan().at.tensor * rows : 0;
  global.T_local = plan().T_local();
  global.T = plan().shape.T;
  global.positions = positions();
  return global;
}

Fp8Copy OpCall::fp8_copy() const {
  const OpCall& call = *this;
  Fp8Copy copy;
  if (!op.has(Slot::fp8_scale)) return copy;
  copy.y = call[Slot::fp8_copy];
  copy.y_transposed = call[Slot::fp8_transposed];
  copy.amax = call[Slot::amax];
  copy.scale = call[Slot::fp8_scale];
  copy.type = type_of(op.has(Slot::fp8_copy) ? Slot::fp8_copy : Slot::fp8_transposed);
  copy.sums = call[Slot::column_sums];
  copy.workspace = workspace();
  return copy;
}

Fp8Scales OpCall::fp8_scales() const {
  const OpCall& call = *this;
  Fp8Scales scales;
  if (!op.has(Slot::left_scale)) return scales;
  scales.left = call[Slot::left_scale];
  scales.right = call[Slot::right_scale];
  scales.transposed = op.as<GemmSize>().transposed;
  return scales;
}

}  // namespace gptbench
