#include "memory_model.h"

#include <algorithm>

#include "tasks.h"

namespace gptbench {
namespace {

constexpr size_t max_complaints = 24;

}  // namespace

MemoryModel::MemoryModel(const Plan& plan)
    : plan_(plan), tasks_(tasks_of(plan)), finished_(plan.ops.size()) {
  for (const Buffer& buffer : plan.buffers)
    if (buffer.dtype != DType::u8) cell_bytes_ = std::min(cell_bytes_, size_of(buffer.dtype));
  for (size_t c = 0; c < cells_.size(); ++c)
    cells_[c].resize(static_cast<size_t>((plan.class_bytes[c] - scratch_bytes(c)) / cell_bytes_));
  for (size_t i = 0; i < finished_.size(); ++i)
    finished_[i].resize(static_cast<size_t>(plan.ops[i].events));
  // Set up before the first step: parameters are drawn, moments are zero as allocated, and so is
  // the history of fp8 tensors, whose scales are set; so is a loss scale.
  std::vector<int> known;
  for (const Role role : {Role::working, Role::master, Role::moment1, Role::moment2})
    known.push_back(plan.representation(role).buffer);
  for (const int id :
       {plan.fp8.scale, plan.fp8.inverse, plan.fp8.amax, plan.fp8.history, plan.fp8.position})
    if (id >= 0) known.push_back(id);
  if (plan.buffer_index.loss_scale >= 0) known.push_back(plan.buffer_index.loss_scale);
  for (const int id : known) {
    const Buffer& buffer = plan.buffers.at(static_cast<size_t>(id));
    std::vector<Cell>& memory = cells_[static_cast<size_t>(buffer.memory_class)];
    const int64_t begin = place_of(buffer);
    for (int64_t at = begin; at < begin + buffer.bytes(); at += cell_bytes_)
      memory.at(static_cast<size_t>(at / cell_bytes_)).buffer = id;
  }
}

// Scratch memory, which no operation names, has no cells: it is much larger than all the rest.
int64_t MemoryModel::scratch_bytes(size_t memory_class) const {
  if (plan_.buffer_index.scratch < 0) return 0;
  const Buffer& scratch = plan_.buffers.at(static_cast<size_t>(plan_.buffer_index.scratch));
  return static_cast<size_t>(scratch.memory_class) == memory_class ? scratch.bytes() : 0;
}

int64_t MemoryModel::place_of(const Buffer& buffer) const {
  const int64_t bytes = scratch_bytes(static_cast<size_t>(buffer.memory_class));
  const bool behind =
      bytes > 0 &&
      buffer.offset > plan_.buffers[static_cast<size_t>(plan_.buffer_index.scratch)].offset;
  return behind ? buffer.offset - bytes : buffer.offset;
}

std::vector<std::string> MemoryModel::replay_step() {
  complaints_.clear();
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Program& program = plan_.programs.at(static_cast<size_t>(tasks_[t].program));
    for_each_op(program, [&](int32_t i, int64_t first_row) {
      execute(i, first_row, static_cast<int32_t>(t));
    });
  }
  // The host waits for all queues at the end of a step, which orders it against the next.
  Clock all{};
  for (const Clock& clock : now_) join(all, clock);
  now_.fill(all);
  for (std::vector<Cell>& memory : cells_)
    for (Cell& cell : memory) cell.task = -1;
  return complaints_;
}

void MemoryModel::join(Clock& clock, const Clock& other) {
  for (size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], other[q]);
}

void MemoryModel::execute(int32_t op_index, int64_t first_row, int32_t task_index) {
  const Op op = at_row(plan_.ops.at(static_cast<size_t>(op_index)), first_row);
  const Task& task = tasks_.at(static_cast<size_t>(task_index));
  const size_t index = static_cast<size_t>(op_index);
  Clock& clock = now_[static_cast<size_t>(op.queue)];
  if (op.queue != QueueId::compute) join(clock, now_[static_cast<size_t>(QueueId::compute)]);
  for (const int32_t wait : op.waits_for) {
    const size_t other = static_cast<size_t>(wait);
    join(clock, finished_.at(other).at(event_of(plan_.ops[other], task.micro_batch)));
  }
  follow_collectives(op, op_index, task_index, clock);
  clock[static_cast<size_t>(op.queue)] += 1;
  unit_read_ = -1;
  for (const Touch& each : touches_of(plan_, op, task))
    if (each.operand.buffer >= 0) touch(op, op_index, task_index, each);
  if (op.events > 0) finished_[index].at(event_of(op, task.micro_batch)) = clock;
}

void MemoryModel::follow_collectives(const Op& op, int32_t op_index, int32_t task_index,
                                     const Clock& before) {
  if (op.kind != OpKind::all_reduce && op.kind != OpKind::reduce_scatter &&
      op.kind != OpKind::all_gather)
    return;
  LastOfAxis& last = last_collective_[static_cast<size_t>(op.axis)];
  const auto queue = static_cast<size_t>(op.queue);
  if (queue != last.queue && last.ticket > before[last.queue])
    complain(op, op_index, task_index, {}, "does not wait for the collective before it");
  last = {queue, before[queue] + 1};
}

// Unit of an operand in a copy of flat space; -1 elsewhere.
int MemoryModel::unit_at(const Operand& operand) const {
  for (const Representation& copy : plan_.representations) {
    if (copy.buffer != operand.buffer || copy.extent == Extent::own_part) continue;
    return copy.extent == Extent::shards ? plan_.space.unit_at_shard(operand.offset)
                                         : plan_.space.unit_at(operand.offset);
  }
  return -1;
}

void MemoryModel::touch(const Op& op, int32_t op_index, int32_t task_index, const Touch& touch) {
  const auto wrong = [&](const std::string& what) {
    complain(op, op_index, task_index, touch.operand, what);
  };
  const Buffer& buffer = plan_.buffers.at(static_cast<size_t>(touch.operand.buffer));
  const Task& task = tasks_[static_cast<size_t>(task_index)];
  if (touch.operand.offset < 0 || touch.operand.offset + touch.elements > buffer.elements)
    return wrong("leaves the buffer: " + std::to_string(touch.operand.offset) + " + " +
                 std::to_string(touch.elements) + " of " + std::to_string(buffer.elements));
  const int64_t slot = slot_of(buffer, task);
  if (slot < 0 || slot >= buffer.slots) return wrong("slot beyond the last");

  const size_t queue = static_cast<size_t>(op.queue);
  const Clock& clock = now_[queue];
  const bool reads = touch.kind != TouchKind::assign && touch.kind != TouchKind::arrive;
  const bool writes = touch.kind != TouchKind::read && touch.kind != TouchKind::transmit;
  const int flat_unit = unit_at(touch.operand);
  const bool is_of_micro_batch = buffer.lifetime == Lifetime::micro_batch ||
                                 buffer.memory_class == MemoryClass::activations;  // a window
  const bool source = touch.kind == TouchKind::read || touch.kind == TouchKind::transmit;
  if (source) unit_read_ = std::max(unit_read_, flat_unit);
  const bool adds = op.kind == OpKind::accumulate ||
                    (op.kind == OpKind::convert && op.as<ConvertSize>().accumulate);
  if (adds && writes && unit_read_ != flat_unit)
    return wrong("receives the gradient of another unit");
  if (touch.kind == TouchKind::transmit) transmitted_.clear();

  const int64_t begin =
      place_of(buffer) + slot * buffer.slot_bytes + touch.operand.offset * size_of(buffer.dtype);
  const int64_t cells = touch.elements * size_of(buffer.dtype) / cell_bytes_;
  std::vector<Cell>& memory = cells_[static_cast<size_t>(buffer.memory_class)];
  const std::optional<int32_t> unit_written = written_unit(op, touch);
  for (int64_t k = 0; k < cells; ++k) {
    Cell& cell = memory.at(static_cast<size_t>(begin / cell_bytes_ + k));
    if (cell.write_ticket > clock[static_cast<size_t>(cell.write_queue)])
      return wrong("not ordered behind the last write");
    if (reads) {
      static constexpr char overwritten[] = "read after it was overwritten through ";
      const char* unknown = nullptr;
      if (cell.buffer < 0)
        unknown = "read before it is written";
      else if (cell.buffer != touch.operand.buffer || cell.slot != slot)
        unknown = overwritten;
      else if (buffer.lifetime == Lifetime::program && cell.task != task_index)
        unknown = "holds what another task wrote";
      else if (is_of_micro_batch && cell.micro_batch != task.micro_batch)
        unknown = "holds what another micro-batch wrote";
      if (touch.kind == TouchKind::transmit)
        transmitted_.push_back(unknown == nullptr);
      else if (unknown != nullptr)
        return wrong(unknown + (unknown == overwritten
                                    ? plan_.buffers[static_cast<size_t>(cell.buffer)].name
                                    : std::string()));
      if (cell.unit >= 0) {
        const Unit& unit = plan_.space.units[static_cast<size_t>(cell.unit)];
        if (!is_message(op.kind) && op.layer >= 0 && unit.kind == UnitKind::layer &&
            unit.layer != op.layer)
          return wrong("holds parameters or gradients of layer " + std::to_string(unit.layer));
        if (source) unit_read_ = std::max<int>(unit_read_, cell.unit);
      }
      cell.read_tickets[queue] = clock[queue];
    }
    if (!writes) continue;
    for (size_t q = 0; q < clock.size(); ++q)
      if (cell.read_tickets[q] > clock[q]) return wrong("not ordered behind the last read");
    const bool known = touch.kind != TouchKind::arrive || transmitted_.at(static_cast<size_t>(k));
    cell.buffer = known ? touch.operand.buffer : -1;
    cell.slot = slot;
    cell.task = task_index;
    cell.micro_batch = task.micro_batch;
    cell.write_queue = static_cast<int32_t>(queue);
    cell.write_ticket = clock[queue];
    if (unit_written) cell.unit = *unit_written;
  }
}

// Which unit's parameters or gradients written elements are of, where they lie in a window; nothing
// where that does not change.
std::optional<int32_t> MemoryModel::written_unit(const Op& op, const Touch& touch) const {
  const std::string& name = plan_.buffers[static_cast<size_t>(touch.operand.buffer)].name;
  const auto in = [&](const char* prefix) {
    return name.compare(0, std::string(prefix).size(), prefix) == 0;
  };
  if (in("gradients::gradient_window.") || in("gradients::gradient_sum.")) {
    if (is_message(op.kind)) return {};
    if (name.find("wte") != std::string::npos)
      return plan_.space.find_unit(UnitKind::token_embedding);
    if (name.find("wpe") != std::string::npos)
      return plan_.space.find_unit(UnitKind::position_embedding);
    if (name.find("head") != std::string::npos) return plan_.space.find_unit(UnitKind::head);
    if (name.find("ln_f") != std::string::npos) return plan_.space.find_unit(UnitKind::final_norm);
    return op.kind == OpKind::fill_zero ? -1 : plan_.space.find_unit(UnitKind::layer, op.layer);
  }
  if (!in("parameters::gathered.") && !in("parameters::converted.") &&
      !in("communication::reduced.") && !in("optimizer_state::transfer.") && !in("host::transfer."))
    return -1;
  if (touch.kind == TouchKind::accumulate) return {};
  return unit_read_;
}

void MemoryModel::complain(const Op& op, int32_t op_index, int32_t task_index,
                           const Operand& operand, const std::string& what) {
  if (complaints_.size() >= max_complaints) return;
  const Task& task = tasks_[static_cast<size_t>(task_index)];
  const Program& program = plan_.programs[static_cast<size_t>(task.program)];
  complaints_.push_back(
      std::string(name_of(program.kind)) + ", micro-batch " + std::to_string(task.micro_batch) +
      ", operation " + std::to_string(op_index) + " (" + spec_of(op.kind).name + ", layer " +
      std::to_string(op.layer) + "): " +
      (operand.buffer < 0 ? "" : plan_.buffers[static_cast<size_t>(operand.buffer)].name + " ") +
      what);
}

}  // namespace gptbench
