#include "plan/builder.h"

#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "plan/fuse.h"

namespace gptbench {

int PlanBuilder::add_buffer(std::string name, MemoryClass memory_class, Lifetime lifetime,
                            DType dtype, int64_t elements, int64_t slots) {
  Buffer buffer;
  buffer.name = std::string(name_of(memory_class)) + "::" + std::move(name);
  buffer.memory_class = memory_class;
  buffer.lifetime = lifetime;
  buffer.dtype = dtype;
  buffer.elements = elements;
  buffer.slots = slots;
  buffers_.insert({buffer.name, static_cast<int>(plan_.buffers.size())});
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int PlanBuilder::add_activation(const std::string& name, Lifetime lifetime, DType dtype,
                                int64_t columns, int64_t row_div, int64_t slots) {
  return add_buffer(name, MemoryClass::activations, lifetime, dtype,
                    checked_product(plan_.micro_batch_rows / row_div, columns, name.c_str()),
                    slots);
}

int PlanBuilder::shared_buffer(const std::string& name, MemoryClass memory_class, DType dtype,
                               int64_t elements) {
  const int found = find_buffer(memory_class, name);
  if (found >= 0) return found;
  return add_buffer(name, memory_class, Lifetime::run, dtype, elements);
}

void PlanBuilder::begin_program(ProgramKind kind, int32_t chunk) {
  const int32_t at = static_cast<int32_t>(plan_.ops.size());
  plan_.programs.push_back({kind, chunk, at, at, at, at});
}

void PlanBuilder::end_program() {
  plan_.programs.back().last = static_cast<int32_t>(plan_.ops.size());
}

void PlanBuilder::begin_loop(int64_t times, int64_t rows) {
  Program& program = plan_.programs.back();
  GPTBENCH_CHECK(program.loop_times == 0, "one loop per program");
  program.loop_first = program.loop_last = static_cast<int32_t>(plan_.ops.size());
  program.loop_times = times;
  program.loop_rows = rows;
}

void PlanBuilder::end_loop() {
  plan_.programs.back().loop_last = static_cast<int32_t>(plan_.ops.size());
}

int PlanBuilder::emit(Op op) {
  // The operation before is of the same program and the same iteration of a loop.
  const bool follows = static_cast<int32_t>(plan_.ops.size()) > plan_.programs.back().loop_last;
  if (fuses_ && follows &&
      (fuse_activation(plan_, plan_.ops.back(), op) || fuse_norm(plan_.ops.back(), op)))
    return static_cast<int>(plan_.ops.size()) - 1;
  if (op.region == Region::automatic) op.region = info_of(op.kind).region;
  plan_.ops.push_back(std::move(op));
  return static_cast<int>(plan_.ops.size()) - 1;
}

int PlanBuilder::find_buffer(MemoryClass memory_class, const std::string& name) const {
  const auto found = buffers_.find(std::string(name_of(memory_class)) + "::" + name);
  return found != buffers_.end() ? found->second : -1;
}

int PlanBuilder::tensor(const std::string& name) const {
  const int found = find_tensor(name);
  GPTBENCH_CHECK(found >= 0, "no tensor " + name);
  return found;
}

int PlanBuilder::find_tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found != tensors_.end() ? found->second : -1;
}

Op row_op(OpKind kind, int64_t layer, int64_t columns, std::vector<Operand> reads,
          std::vector<Operand> writes, int64_t row_div) {
  Op op;
  op.kind = kind;
  op.layer = static_cast<int32_t>(layer);
  op.N = columns;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  op.row_count = std::numeric_limits<int64_t>::max();
  op.row_div = row_div;
  return op;
}

Op convert_rows(int64_t layer, int64_t columns, Operand read, int64_t read_stride, Operand write,
                int64_t write_stride) {
  Op op = row_op(OpKind::convert, layer, columns, {read}, {write});
  op.read_stride = read_stride;
  op.write_stride = write_stride;
  return op;
}

Op flat_op(OpKind kind, int64_t elements, std::vector<Operand> reads, std::vector<Operand> writes) {
  Op op;
  op.kind = kind;
  op.elements = elements;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  return op;
}

Op flat_message(OpKind kind, QueueId queue, Axis axis, int64_t elements, int64_t element_bytes,
                Operand read, Operand write) {
  Op op = flat_op(kind, elements, {read}, {write});
  op.queue = queue;
  op.axis = axis;
  op.bytes = elements * element_bytes;
  return op;
}

Op flat_transfer(OpKind kind, int64_t elements, Operand read, Operand write) {
  Op op = flat_op(kind, elements, {read}, {write});
  op.queue = QueueId::copy;
  return op;
}

Op row_message(OpKind kind, QueueId queue, Axis axis, int64_t layer, int64_t columns,
               int64_t element_bytes, Operand read, Operand write, int64_t row_div) {
  Op op = row_op(kind, layer, columns, {read}, {write}, row_div);
  op.queue = queue;
  op.axis = axis;
  op.bytes_a_row = columns * element_bytes;
  return op;
}

}  // namespace gptbench
