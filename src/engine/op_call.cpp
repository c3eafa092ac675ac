#include "engine/op_call.h"

#include "engine/engine.h"

namespace gptbench {

OpCall::OpCall(Engine& engine, const Op& op_, const Task& task_)
    : op(op_),
      task(task_),
      held_rows(task.sequences.count * engine.plan_.T_local()),
      rows(rows_of(op, held_rows - engine.first_row_)),
      engine_(engine) {}

const Plan& OpCall::plan() const {
  return engine_.plan_;
}

Device& OpCall::device() const {
  return engine_.device_;
}

const KernelTable& OpCall::kernels() const {
  return engine_.kernels_;
}

Queue& OpCall::queue() const {
  return engine_.queue(op.queue);
}

Communicator& OpCall::group() const {
  return engine_.communicators_[op.axis];
}

OffloadFile& OpCall::offload_file() const {
  return *engine_.offload_file_;
}

const Arena& OpCall::arena() const {
  return engine_.arena_;
}

int32_t OpCall::slot() const {
  return engine_.slot_;
}

int64_t OpCall::update() const {
  return engine_.updates_ + 1;
}

const float* OpCall::corrections() const {
  return engine_.corrections();
}

void* OpCall::address(Slot name, int64_t elements) const {
  Operand operand = at_row(op[name], engine_.first_row_);
  operand.offset += elements;
  return arena().address(operand, slot());
}

DType OpCall::type_of(Slot name) const {
  return plan().buffers[static_cast<size_t>(op[name].buffer)].dtype;
}

Workspace OpCall::workspace() const {
  const int scratch = plan().scratch;
  if (scratch < 0) return {};
  return {arena().address({scratch}, 0), plan().buffers[static_cast<size_t>(scratch)].elements};
}

Dropout OpCall::dropout() const {
  Dropout dropout;
  dropout.rate = plan().config.model.dropout;
  dropout.seed = engine_.dropout_seed();
  dropout.instance = static_cast<uint32_t>((op.layer + 1) * 8 + op.site);
  if (engine_.replay_ != Engine::Replay::never && plan().dropout_seed >= 0)
    dropout.seed_in_memory =
        static_cast<const uint64_t*>(arena().address({plan().dropout_seed}, 0));
  return dropout;
}

Positions OpCall::positions() const {
  return engine_.positions();
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
  Fp8Copy copy;
  if (!op.has(Slot::fp8_scale)) return copy;
  copy.y = write(Slot::fp8_copy);
  copy.y_transposed = write(Slot::fp8_transposed);
  copy.amax = write_as<float>(Slot::amax);
  copy.scale = read_as<float>(Slot::fp8_scale);
  copy.type = type_of(op.has(Slot::fp8_copy) ? Slot::fp8_copy : Slot::fp8_transposed);
  copy.sums = write(Slot::column_sums);
  copy.workspace = workspace();
  return copy;
}

}  // namespace gptbench
