#include "memory_model.h"

#include <algorithm>

#include "base/fp8.h"

namespace gptbench {
namespace {

constexpr size_t most_complaints = 24;

class TouchList {
 public:
  TouchList(const Op& op, std::vector<Touch>& list) : op_(op), list_(list) {}

  void reads(std::vector<int64_t> elements) { add(op_.reads, elements, Access::read); }
  void assigns(std::vector<int64_t> elements) { add(op_.writes, elements, Access::assign); }
  void accumulates(std::vector<int64_t> elements) { add(op_.writes, elements, Access::accumulate); }
  // Both scales of an fp8 product.
  void scales(size_t first) {
    for (const size_t position : {first, first + 1})
      list_.push_back({op_.reads.at(position), 1, Access::read});
  }
  // One read at a distance from its operand.
  void read(size_t position, int64_t distance, int64_t elements) {
    Operand operand = op_.reads.at(position);
    operand.offset += distance;
    list_.push_back({operand, elements, Access::read});
  }
  // The parts of `ranks` ranks, of which the one read is this rank's.
  void gather(int64_t part, int64_t ranks) {
    list_.push_back({op_.reads.at(0), part, Access::transmit});
    for (int64_t rank = 0; rank < ranks; ++rank) {
      Operand target = op_.writes.at(0);
      target.offset += rank * part;
      list_.push_back({target, part, Access::arrive});
    }
  }
  // `columns` elements of rows first .. first + count - 1 of each of B sequences of T rows,
  // `stride` elements apart.
  void rows(const Operand& operand, int64_t B, int64_t T, int64_t first, int64_t count,
            int64_t stride, int64_t columns, Access access) {
    for (int64_t b = 0; b < B; ++b)
      for (int64_t row = b * T + first; row < b * T + first + count; ++row)
        list_.push_back({{operand.buffer, operand.offset + row * stride}, columns, access});
  }
  void accumulate(size_t position, int64_t distance, int64_t elements) {
    Operand operand = op_.writes.at(position);
    operand.offset += distance;
    list_.push_back({operand, elements, Access::accumulate});
  }
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

// Causal attention of whole sequences (peer -1), or of the rows that a context rank holds (its
// positions: chunks r and 2c - 1 - r of 2c) with the keys of rank `peer`.
void attention_touches(TouchList& touch, const Plan& plan, const Op& op, int64_t B) {
  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  const bool forward = op.kind == OpKind::attention_forward, alone = op.peer < 0;
  const int64_t T = s.T / plan.grid.context, own = plan.at.context, queries = s.H * s.D;
  const int64_t packed = 2 * s.H_kv * s.D;
  const bool later = op.peer > own, earlier = !alone && op.peer < own;
  const int64_t first_query = later ? T / 2 : 0, T_q = later ? T / 2 : T;
  const int64_t T_k = earlier ? T / 2 : T;
  const size_t q = forward ? 0 : 1;
  const int64_t kv_row = later || earlier ? packed : s.qkv();
  const auto lse = [&](const Operand& operand, Access access) {
    touch.rows(operand, B * s.H, T, first_query, T_q, 1, 1, access);
  };
  touch.rows(op.reads.at(q), B, T, first_query, T_q, s.qkv(), queries, Access::read);
  touch.rows(op.reads.at(q + 1), B, T, 0, T_k, kv_row, packed, Access::read);
  touch.read(forward ? 2 : 5, 0, B);
  if (forward) {
    const Access access = later || earlier ? Access::accumulate : Access::assign;
    touch.rows(op.writes.at(0), B, T, first_query, T_q, queries, queries, access);
    lse(op.writes.at(1), access);
    return;
  }
  const Access access = alone ? Access::assign : Access::accumulate;
  touch.rows(op.reads.at(0), B, T, first_query, T_q, queries, queries, Access::read);
  touch.rows(op.reads.at(3), B, T, first_query, T_q, queries, queries, Access::read);
  lse(op.reads.at(4), Access::read);
  touch.rows(op.writes.at(0), B, T, first_query, T_q, alone ? s.qkv() : queries, queries, access);
  touch.rows(op.writes.at(1), B, T, 0, T_k, alone ? s.qkv() : packed, packed, access);
}

}  // namespace

std::vector<Touch> touches_of(const Plan& plan, const Op& op, const Task& task) {
  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  const int64_t all_rows = task.sequences.count * (s.T / plan.grid.context);
  const int64_t R = rows_of(op, all_rows);
  const int64_t K = op.K, N = op.N, n = op.elements;
  // Of messages: elements of the full array, and of the part of one rank.
  const int64_t whole = op.row_count > 0 ? all_rows * N : n;
  const int64_t part = is_message(op.kind) ? whole / plan.grid.size_of(op.axis) : 0;
  // Of a row a sequence: the rows of this rank's part, and the first of them that begins a
  // sequence.
  const int64_t part_rows = all_rows / op.row_div;
  const int64_t first_position = (s.T - op.part * part_rows % s.T) % s.T;
  // Of fp8 factors: whether there are, and how many rows they have where they stand as columns.
  const bool fp8 = !op.reads.empty() && op.reads[0].buffer >= 0 &&
                   is_fp8(plan.buffers[static_cast<size_t>(op.reads[0].buffer)].dtype);
  const auto columns_of = [&](int64_t rows) { return op.transposed ? padded_rows(rows) : rows; };
  const int64_t rows_or_flat = op.row_count > 0 ? R : N > 0 ? n / N : 0;
  std::vector<Touch> list;
  TouchList touch(op, list);
  switch (op.kind) {
    case OpKind::load_tokens:
      touch.assigns({R, R, R});
      break;
    case OpKind::load_labels:
    case OpKind::load_lengths:
      touch.assigns({R});
      break;
    case OpKind::load_control:
      touch.assigns({1, 1});
      break;
    case OpKind::fill_zero:
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::join:
      break;
    case OpKind::copy:
      touch.reads({op.row_count > 0 ? R * N : n});
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::linear_forward:
      touch.reads({R * K, N * K, N});
      if (fp8) touch.scales(3);
      touch.assigns({R * N});
      break;
    case OpKind::linear_backward_input:
      touch.reads({R * N, N * K});
      if (fp8) touch.scales(2);
      touch.write(0, R * K, op.accumulate ? Access::accumulate : Access::assign);
      break;
    case OpKind::linear_backward_weight:
      touch.reads({columns_of(R) * N, columns_of(R) * K});
      if (fp8) touch.scales(2);
      touch.accumulates({N * K, N});
      break;
    case OpKind::linear_gelu_forward:
      touch.reads({R * K, N * K, N});
      touch.assigns({R * N, R * N});
      break;
    case OpKind::linear_gelu_backward_input:
      touch.reads({R * N, N * K, R * K});
      touch.assigns({R * K});
      break;
    case OpKind::bias_backward:
      touch.reads({R * N});
      touch.accumulates({N});
      break;
    case OpKind::layernorm_forward:
      touch.reads({R * N, N, N});
      touch.assigns({R * N, R, R});
      break;
    case OpKind::layernorm_backward:
      touch.reads({R * N, R * N, N, R, R});
      touch.accumulates({R * N, N, N});
      break;
    case OpKind::rmsnorm_forward:
      touch.reads({R * N, N});
      touch.assigns({R * N, R});
      break;
    case OpKind::rmsnorm_backward:
      touch.reads({R * N, R * N, N, R});
      touch.accumulates({R * N, N});
      break;
    case OpKind::rotary_forward:
    case OpKind::rotary_backward:
      touch.accumulates({R * N});  // turned in place, v left as it is
      break;
    case OpKind::swiglu_forward:
      touch.reads({R * 2 * N});
      touch.assigns({R * N});
      break;
    case OpKind::swiglu_backward:
      touch.reads({R * N, R * 2 * N});
      touch.assigns({R * 2 * N});
      break;
    case OpKind::attention_forward:
    case OpKind::attention_backward:
      attention_touches(touch, plan, op, task.sequences.count);
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
    case OpKind::tanh_forward:
      touch.reads({R * N});
      touch.assigns({R * N});
      break;
    case OpKind::tanh_backward:
      touch.reads({R * N, R * N});
      touch.assigns({R * N});
      break;
    case OpKind::first_rows_forward:
      for (int64_t row = first_position; row < part_rows; row += s.T) touch.read(0, row * N, N);
      touch.assigns({R * N});
      break;
    case OpKind::first_rows_backward:
      touch.reads({R * N});
      for (int64_t row = first_position; row < part_rows; row += s.T)
        touch.accumulate(0, row * N, N);
      break;
    case OpKind::embedding_forward:
      touch.reads({R, s.V * N, s.T * N, R, 2 * N});
      touch.assigns({R * N});
      break;
    case OpKind::embedding_backward:
      touch.reads({R * N, R, R});
      touch.accumulates({s.V * N, s.T * N, 2 * N});
      break;
    case OpKind::cross_entropy_statistics:
      touch.reads({R * N, R});
      touch.assigns({R, R, R});
      break;
    case OpKind::cross_entropy_combine:
      for (int64_t rank = 0; rank < plan.grid.tensor; ++rank)
        for (int64_t array = 0; array < 3; ++array) touch.read(0, rank * n + array * K, R);
      touch.assigns({R, R, R});
      break;
    case OpKind::cross_entropy_finish:
      touch.reads({R, R, R, R, 1, 1});
      touch.accumulates({1, R * N});
      break;
    case OpKind::fp8_quantize:
      touch.reads({rows_or_flat * N});
      break;
    case OpKind::fp8_transpose:
      touch.reads({R * N});
      touch.assigns({padded_rows(R) * N});
      break;
    case OpKind::fp8_update_scales:
      touch.accumulates({n, n, n, n * plan.config.precision.fp8_amax_history, n});
      break;
    case OpKind::accumulate:
      touch.reads({op.row_count > 0 ? R * N : n});
      touch.accumulates({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::squared_norm:
      touch.reads({n});
      touch.accumulates({1});
      break;
    case OpKind::sum_scalars:
      touch.reads({n});
      touch.assigns({1});
      break;
    case OpKind::loss_scale:
      touch.accumulates({3, 1});
      for (const size_t position : {2, 3, 4}) touch.write(position, 1, Access::assign);
      break;
    case OpKind::clip_factor:
      touch.reads({1, 1, 1});
      touch.assigns({1});
      break;
    case OpKind::adamw:
      touch.reads({n, 1, 1});
      touch.accumulates({n, n, n});
      touch.write(3, n, Access::assign);
      break;
    case OpKind::convert:
      if (op.row_count == 0) {
        touch.reads({n});
        touch.write(0, n, op.accumulate ? Access::accumulate : Access::assign);
        break;
      }
      touch.rows(op.reads.at(0), 1, R, 0, R, op.read_stride > 0 ? op.read_stride : N, N,
                 Access::read);
      touch.rows(op.writes.at(0), 1, R, 0, R, op.write_stride > 0 ? op.write_stride : N, N,
                 op.accumulate ? Access::accumulate : Access::assign);
      break;
    case OpKind::all_reduce:
      touch.accumulates({whole});
      break;
    case OpKind::reduce_scatter:
      touch.reads({whole});
      touch.assigns({part});
      break;
    case OpKind::all_gather:
      // All ranks do the same: what this one knows nothing of in its own part (rows beyond those of
      // the micro-batch), the others know nothing of in theirs.
      touch.gather(part, plan.grid.size_of(op.axis));
      break;
    case OpKind::load:
    case OpKind::store:
      touch.reads({op.row_count > 0 ? R * N : n});
      touch.assigns({op.row_count > 0 ? R * N : n});
      break;
    case OpKind::send:
      touch.reads({R * N});
      break;
    case OpKind::receive:
      touch.assigns({R * N});
      break;
  }
  if (op.copies_fp8) {
    const int64_t columns = op.kind == OpKind::swiglu_backward ? 2 * N : N;
    const size_t first = op.writes.size() - 4;
    list.push_back({op.reads.back(), 1, Access::read});
    touch.write(first, rows_or_flat * columns, Access::assign);
    touch.write(first + 1, padded_rows(rows_or_flat) * columns, Access::assign);
    touch.write(first + 2, 1, Access::accumulate);
    touch.write(first + 3, columns, Access::accumulate);
  }
  return list;
}

MemoryModel::MemoryModel(const Plan& plan)
    : plan_(plan), finished_(plan.ops.size()), latest_slot_(plan.ops.size()) {
  for (const Buffer& buffer : plan.buffers)
    if (buffer.dtype != DType::u8) cell_bytes_ = std::min(cell_bytes_, size_of(buffer.dtype));
  for (size_t c = 0; c < cells_.size(); ++c)
    cells_[c].resize(static_cast<size_t>((plan.class_bytes[c] - scratch_bytes(c)) / cell_bytes_));
  int32_t slots = 1;
  for (const Task& task : plan.tasks) slots = std::max(slots, task.slot + 1);
  for (std::vector<Clock>& each : finished_) each.resize(static_cast<size_t>(slots));
  // Set up before the first step: parameters are drawn, moments are zero as allocated, and so is
  // the history of fp8 tensors, whose scales are set; so is a loss scale.
  std::vector<int> known;
  for (const Role role : {Role::working, Role::master, Role::moment1, Role::moment2})
    known.push_back(plan.representation(role).buffer);
  for (const int id :
       {plan.fp8.scale, plan.fp8.inverse, plan.fp8.amax, plan.fp8.history, plan.fp8.position})
    if (id >= 0) known.push_back(id);
  if (plan.loss_scale >= 0) known.push_back(plan.loss_scale);
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
  if (plan_.scratch < 0) return 0;
  const Buffer& scratch = plan_.buffers.at(static_cast<size_t>(plan_.scratch));
  return static_cast<size_t>(scratch.memory_class) == memory_class ? scratch.bytes() : 0;
}

int64_t MemoryModel::place_of(const Buffer& buffer) const {
  const int64_t bytes = scratch_bytes(static_cast<size_t>(buffer.memory_class));
  const bool behind =
      bytes > 0 && buffer.offset > plan_.buffers[static_cast<size_t>(plan_.scratch)].offset;
  return behind ? buffer.offset - bytes : buffer.offset;
}

std::vector<std::string> MemoryModel::replay_step() {
  complaints_.clear();
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    const Program& program = plan_.programs.at(static_cast<size_t>(plan_.tasks[t].program));
    for (int32_t i = program.first; i < program.last; ++i) execute(i, static_cast<int32_t>(t));
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

void MemoryModel::execute(int32_t op_index, int32_t task_index) {
  const Op& op = plan_.ops.at(static_cast<size_t>(op_index));
  const Task& task = plan_.tasks.at(static_cast<size_t>(task_index));
  const size_t index = static_cast<size_t>(op_index);
  Clock& clock = now_[static_cast<size_t>(op.queue)];
  if (op.queue != QueueId::compute) join(clock, now_[static_cast<size_t>(QueueId::compute)]);
  for (const Wait& wait : op.waits_for) {
    const size_t other = static_cast<size_t>(wait.op);
    join(clock, finished_.at(other).at(
                    static_cast<size_t>(wait.same_slot ? task.slot : latest_slot_[other])));
  }
  clock[static_cast<size_t>(op.queue)] += 1;
  unit_read_ = -1;
  for (const Touch& each : touches_of(plan_, op, task))
    if (each.operand.buffer >= 0) touch(op, op_index, task_index, each);
  finished_[index][static_cast<size_t>(task.slot)] = clock;
  latest_slot_[index] = task.slot;
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
  const Task& task = plan_.tasks[static_cast<size_t>(task_index)];
  if (touch.operand.offset < 0 || touch.operand.offset + touch.elements > buffer.elements)
    return wrong("leaves the buffer: " + std::to_string(touch.operand.offset) + " + " +
                 std::to_string(touch.elements) + " of " + std::to_string(buffer.elements));
  const int32_t slot = buffer.slots > 1 ? task.slot : 0;
  if (slot >= buffer.slots) return wrong("slot beyond the last");

  const size_t queue = static_cast<size_t>(op.queue);
  const Clock& clock = now_[queue];
  const bool reads = touch.access != Access::assign && touch.access != Access::arrive;
  const bool writes = touch.access != Access::read && touch.access != Access::transmit;
  const int flat_unit = unit_at(touch.operand);
  const bool source = touch.access == Access::read || touch.access == Access::transmit;
  if (source) unit_read_ = std::max(unit_read_, flat_unit);
  const bool adds = op.kind == OpKind::accumulate || (op.kind == OpKind::convert && op.accumulate);
  if (adds && writes && unit_read_ != flat_unit)
    return wrong("receives the gradient of another unit");
  if (touch.access == Access::transmit) transmitted_.clear();

  const int64_t begin =
      place_of(buffer) + slot * buffer.slot_bytes + touch.operand.offset * size_of(buffer.dtype);
  const int64_t cells = touch.elements * size_of(buffer.dtype) / cell_bytes_;
  std::vector<Cell>& memory = cells_[static_cast<size_t>(buffer.memory_class)];
  for (int64_t k = 0; k < cells; ++k) {
    Cell& cell = memory.at(static_cast<size_t>(begin / cell_bytes_ + k));
    if (cell.write_ticket > clock[static_cast<size_t>(cell.write_queue)])
      return wrong("not ordered behind the last write");
    std::string unknown;
    if (reads) {
      if (cell.buffer != touch.operand.buffer || cell.slot != slot)
        unknown = cell.buffer < 0 ? "read before it is written"
                                  : "read after it was overwritten through " +
                                        plan_.buffers[static_cast<size_t>(cell.buffer)].name;
      else if (buffer.lifetime == Lifetime::program && cell.task != task_index)
        unknown = "holds what another task wrote";
      else if (buffer.lifetime == Lifetime::micro_batch && cell.micro_batch != task.micro_batch)
        unknown = "holds what another micro-batch wrote";
      if (touch.access == Access::transmit)
        transmitted_.push_back(unknown.empty());
      else if (!unknown.empty())
        return wrong(unknown);
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
    const bool known = touch.access != Access::arrive || transmitted_.at(static_cast<size_t>(k));
    cell.buffer = known ? touch.operand.buffer : -1;
    cell.slot = slot;
    cell.task = task_index;
    cell.micro_batch = task.micro_batch;
    cell.write_queue = static_cast<int32_t>(queue);
    cell.write_ticket = clock[queue];
    cell.unit = written_unit(op, touch, cell.unit);
  }
}

// Which unit's parameters or gradients a written element is of, where it lies in a window.
int32_t MemoryModel::written_unit(const Op& op, const Touch& touch, int32_t before) const {
  const std::string& name = plan_.buffers[static_cast<size_t>(touch.operand.buffer)].name;
  const auto in = [&](const char* prefix) {
    return name.compare(0, std::string(prefix).size(), prefix) == 0;
  };
  if (in("gradients::gradient_window.") || in("gradients::gradient_sum.")) {
    if (is_message(op.kind)) return before;
    if (name.find("wte") != std::string::npos)
      return plan_.space.find_unit(UnitKind::token_embedding);
    if (name.find("wpe") != std::string::npos)
      return plan_.space.find_unit(UnitKind::position_embedding);
    if (name.find("head") != std::string::npos) return plan_.space.find_unit(UnitKind::head);
    if (name.find("ln_f") != std::string::npos) return plan_.space.find_unit(UnitKind::final_norm);
    return op.kind == OpKind::fill_zero ? -1 : plan_.space.find_unit(UnitKind::layer, op.layer);
  }
  if (!in("parameters::gathered.") && !in("parameters::converted.") &&
      !in("communication::reduced.") && !in("optimizer_state::transfer."))
    return -1;
  return touch.access == Access::accumulate ? before : unit_read_;
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
