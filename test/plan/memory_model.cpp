#include "memory_model.h"

#include <algorithm>

namespace gptbench {
namespace {

constexpr size_t most_complaints = 24;

class TouchList {
 public:
  TouchList(const Op& op, std::vector<Touch>& list) : op_(op), list_(list) {}

  void reads(std::vector<int64_t> elements) { add(op_.reads, elements, Access::read); }
  void assigns(std::vector<int64_t> elements) { add(op_.writes, elements, Access::assign); }
  void accumulates(std::vector<int64_t> elements) { add(op_.writes, elements, Access::accumulate); }
  // One write with an access of its own.
  void write(size_t position, int64_t elements, Access access) {
    list_.push_back({op_.writes.at(position), elements, access});
  }

 private:
  void add(const std::vector<Operand>& operands, const std::vector<int64_t>& elements,
           Access access) {
    for (size_t i = 0; i < elements.size(); ++i)
      list_.push_back({operands.at(i), elements[i], access});
  }

  const Op& op_;
  std::vector<Touch>& list_;
};

}  // namespace

std::vector<Touch> touches_of(const Plan& plan, const Op& op, const Task& task) {
  const ModelShape& s = plan.shape;
  const int64_t R = rows_of(op, task.sequences.count * s.T);
  const int64_t K = op.K, N = op.N, n = op.elements;
  std::vector<Touch> list;
  TouchList touch(op, list);
  switch (op.kind) {
    case OpKind::load_tokens:
      touch.assigns({R, R});
      break;
    case OpKind::load_control:
      touch.assigns({1});
      break;
    case OpKind::fill_zero:
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::linear_forward:
      touch.reads({R * K, N * K, N});
      touch.assigns({R * N});
      break;
    case OpKind::linear_backward_input:
      touch.reads({R * N, N * K});
      touch.write(0, R * K, op.accumulate ? Access::accumulate : Access::assign);
      break;
    case OpKind::linear_backward_weight:
      touch.reads({R * N, R * K});
      touch.accumulates({N * K, N});
      break;
    case OpKind::layernorm_forward:
      touch.reads({R * N, N, N});
      touch.assigns({R * N, R, R});
      break;
    case OpKind::layernorm_backward:
      touch.reads({R * N, R * N, N, R, R});
      touch.accumulates({R * N, N, N});
      break;
    case OpKind::attention_forward:
      touch.reads({R * s.qkv()});
      touch.assigns({R * s.H * s.D, R * s.H});
      break;
    case OpKind::attention_backward:
      touch.reads({R * s.H * s.D, R * s.qkv(), R * s.H * s.D, R * s.H});
      touch.assigns({R * s.qkv()});
      break;
    case OpKind::gelu_forward:
    case OpKind::dropout_backward:
      touch.reads({R * N});
      touch.assigns({R * N});
      break;
    case OpKind::gelu_backward:
    case OpKind::residual_forward:
      touch.reads({R * N, R * N});
      touch.assigns({R * N});
      break;
    case OpKind::embedding_forward:
      touch.reads({R, s.V * N, s.T * N});
      touch.assigns({R * N});
      break;
    case OpKind::embedding_backward:
      touch.reads({R * N, R});
      touch.accumulates({s.V * N, s.T * N});
      break;
    case OpKind::cross_entropy_statistics:
      touch.reads({R * N, R});
      touch.assigns({R, R, R});
      break;
    case OpKind::cross_entropy_finish:
      touch.reads({R, R, R, R});
      touch.accumulates({1, R * N});
      break;
    case OpKind::squared_norm:
      touch.reads({n});
      touch.accumulates({1});
      break;
    case OpKind::clip_factor:
      touch.reads({1});
      touch.assigns({1});
      break;
    case OpKind::adamw:
      touch.reads({n, 1});
      touch.accumulates({n, n, n});
      touch.write(3, n, Access::assign);
      break;
    case OpKind::cast:
      touch.reads({n});
      touch.assigns({n});
      break;
    case OpKind::all_reduce:
      touch.accumulates({n});
      break;
  }
  return list;
}

MemoryModel::MemoryModel(const Plan& plan) : plan_(plan), finished_(plan.ops.size()) {
  for (size_t c = 0; c < bytes_.size(); ++c)
    bytes_[c].resize(static_cast<size_t>(plan.class_bytes[c]));
  // Set up before the first step: parameters are drawn, moments are zero as allocated.
  for (const Role role : {Role::working, Role::master, Role::moment1, Role::moment2}) {
    const Buffer& buffer = plan.buffers.at(static_cast<size_t>(plan.representation(role).buffer));
    std::vector<Byte>& memory = bytes_[static_cast<size_t>(buffer.memory_class)];
    for (int64_t at = buffer.offset; at < buffer.offset + buffer.bytes(); ++at)
      memory.at(static_cast<size_t>(at)).buffer = plan.representation(role).buffer;
  }
}

std::vector<std::string> MemoryModel::replay_step() {
  complaints_.clear();
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    const Task& task = plan_.tasks[t];
    const Program& program = plan_.programs.at(static_cast<size_t>(task.program));
    for (int32_t i = program.first; i < program.last; ++i) {
      const Op& op = plan_.ops.at(static_cast<size_t>(i));
      Clock& clock = now_[static_cast<size_t>(op.queue)];
      for (const int32_t other : op.waits_for) {
        const Clock& before = finished_.at(static_cast<size_t>(other));
        for (size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], before[q]);
      }
      clock[static_cast<size_t>(op.queue)] += 1;
      for (const Touch& each : touches_of(plan_, op, task))
        if (each.operand.buffer >= 0) touch(op, i, static_cast<int32_t>(t), each);
      finished_[static_cast<size_t>(i)] = clock;
    }
  }
  // The host waits for all queues at the end of a step, which orders it against the next.
  Clock all{};
  for (const Clock& clock : now_)
    for (size_t q = 0; q < all.size(); ++q) all[q] = std::max(all[q], clock[q]);
  now_.fill(all);
  for (std::vector<Byte>& memory : bytes_)
    for (Byte& byte : memory) byte.task = -1;
  return complaints_;
}

void MemoryModel::touch(const Op& op, int32_t op_index, int32_t task_index, const Touch& touch) {
  const auto wrong = [&](const std::string& what) {
    complain(op, op_index, task_index, touch.operand, what);
  };
  const Buffer& buffer = plan_.buffers.at(static_cast<size_t>(touch.operand.buffer));
  const Task& task = plan_.tasks[static_cast<size_t>(task_index)];
  if (touch.operand.offset < 0 || touch.operand.offset + touch.elements > buffer.elements)
    return wrong("leaves the buffer: " + std::to_string(touch.operand.offset) + " + " +
                 std::to_string(touch.elements) + " of " + std::to_string(buffer.elements));
  const int32_t slot = buffer.slots > 1 ? task.slot : 0;
  if (slot >= buffer.slots) return wrong("slot beyond the last");

  const size_t queue = static_cast<size_t>(op.queue);
  const Clock& clock = now_[queue];
  const int64_t begin =
      buffer.offset + slot * buffer.slot_bytes + touch.operand.offset * size_of(buffer.dtype);
  const int64_t end = begin + touch.elements * size_of(buffer.dtype);
  std::vector<Byte>& memory = bytes_[static_cast<size_t>(buffer.memory_class)];
  for (int64_t at = begin; at < end; ++at) {
    Byte& byte = memory.at(static_cast<size_t>(at));
    if (byte.write_ticket > clock[static_cast<size_t>(byte.write_queue)])
      return wrong("not ordered behind the last write");
    if (touch.access != Access::assign) {
      if (byte.buffer != touch.operand.buffer || byte.slot != slot)
        return wrong(byte.buffer < 0 ? "read before it is written"
                                     : "read after it was overwritten through " +
                                           plan_.buffers[static_cast<size_t>(byte.buffer)].name);
      if (buffer.lifetime == Lifetime::program && byte.task != task_index)
        return wrong("holds what another task wrote");
      if (buffer.lifetime == Lifetime::micro_batch && byte.micro_batch != task.micro_batch)
        return wrong("holds what another micro-batch wrote");
    }
    if (touch.access == Access::read) {
      byte.read_tickets[queue] = clock[queue];
      continue;
    }
    for (size_t q = 0; q < clock.size(); ++q)
      if (byte.read_tickets[q] > clock[q]) return wrong("not ordered behind the last read");
    byte.buffer = touch.operand.buffer;
    byte.slot = slot;
    byte.task = task_index;
    byte.micro_batch = task.micro_batch;
    byte.write_queue = static_cast<int32_t>(queue);
    byte.write_ticket = clock[queue];
  }
}

void MemoryModel::complain(const Op& op, int32_t op_index, int32_t task_index,
                           const Operand& operand, const std::string& what) {
  if (complaints_.size() >= most_complaints) return;
  const Task& task = plan_.tasks[static_cast<size_t>(task_index)];
  const Program& program = plan_.programs[static_cast<size_t>(task.program)];
  complaints_.push_back(
      std::string(name_of(program.kind)) + ", micro-batch " + std::to_string(task.micro_batch) +
      ", operation " + std::to_string(op_index) + " (" + info_of(op.kind).name + ", layer " +
      std::to_string(op.layer) + "): " + plan_.buffers[static_cast<size_t>(operand.buffer)].name +
      " " + what);
}

}  // namespace gptbench
