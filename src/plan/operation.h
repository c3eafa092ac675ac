// The schedule as data. A rank's step is a list of tasks; a task runs one program (the operations
// of a forward pass, a backward pass, the optimizer, ...) for one micro-batch; an operation names
// what it reads and writes, the queue it runs on and the operations it waits for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "plan/batch.h"
#include "plan/grid.h"
#include "plan/op_spec.h"

namespace gptbench {

// Work on different queues may overlap. Order between queues:
//   - an operation of another queue starts after the compute operations issued before it;
//   - a compute operation starts after the operations named in its waits_for;
//   - within a queue, work starts in the order of issue.
// Messages from rank to rank (pipeline, ring of the context axis) have a queue for each direction
// and way, so that none waits for another's peer. host_kernels: kernels of the host on host memory,
// which run where they are issued.
enum class QueueId : uint8_t {
  compute,
  tensor,
  send_context,
  receive_context,
  data,
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
  copy,
  host_kernels
};
constexpr int num_queues = 11;
const char* name_of(QueueId queue);

// An array argument: elements from `offset` of the buffer, within the task's slot where the buffer
// has slots (slot_of in plan/layout.h). buffer < 0: absent (null).
struct Operand {
  int buffer = -1;
  int64_t offset = 0;
  int64_t row_stride = 0;  // in a loop (Program): elements per row that earlier iterations covered
};

// Operands of an operation by name; only those that are present.
class Operands {
 public:
  struct Named {
    Slot slot = Slot::none;
    Operand operand;
  };

  Operands() = default;
  Operands(std::initializer_list<Named> operands);  // absent ones are left out

  // The operand of that name; an absent one where there is none.
  const Operand& operator[](Slot slot) const;
  bool has(Slot slot) const { return (*this)[slot].buffer >= 0; }
  // An absent operand removes the name.
  void set(Slot slot, const Operand& operand);

  const Named* begin() const { return operands_.data(); }
  const Named* end() const { return operands_.data() + operands_.size(); }
  Named* begin() { return operands_.data(); }
  Named* end() { return operands_.data() + operands_.size(); }

 private:
  std::vector<Named> operands_;
};

// Sizes of an operation, one struct for each group of kinds (SizeGroup in plan/op_spec.h). Rows are
// those that the operation works on (rows_of).

// How many elements: so many for each row, or a fixed number; one of the two is 0.
struct ElementCount {
  int64_t columns = 0, fixed = 0;
  int64_t of(int64_t rows) const { return columns * rows + fixed; }
};
constexpr ElementCount per_row(int64_t columns) {
  return {columns, 0};
}
constexpr ElementCount flat(int64_t elements) {
  return {0, elements};
}

// Rows of so many columns.
struct RowSize {
  int64_t columns = 0;
};

// The same, and rows of a matrix that does not scale with the micro-batch; then there are no
// others.
struct MatrixSize {
  int64_t columns = 0, fixed_rows = 0;
  int64_t rows(int64_t rows) const { return rows + fixed_rows; }
};

// Which rows of a step assign the gradient of a matrix; all others add to it. adds: none, the
// gradient is zeroed before; begins_step: the first rows of the first micro-batch;
// begins_micro_batch: the first rows of each micro-batch.
enum class GradientSum : uint8_t { adds, begins_step, begins_micro_batch };

// y[R,N] = x[R,K] W[N,K]^T and its gradients. transposed: fp8 factors are (device/kernels.h,
// Fp8Scales). sum: of dweight.
struct GemmSize {
  int64_t K = 0, N = 0;
  bool transposed = false;
  GradientSum sum = GradientSum::adds;
};

// The keys are those of context rank keys_of; -1: each rank holds whole sequences. accumulate: the
// results over earlier blocks of keys become those over these keys as well.
struct AttentionSize {
  int32_t keys_of = -1;
  bool accumulate = false;
};

// Logits of `columns` tokens from first_token on, of which the first `valid` exist. row_weight: of
// a row in the loss.
struct LossSize {
  int64_t columns = 0, valid = 0, first_token = 0;
  double row_weight = 0.0;
};

// Elements from one rank's statistics to the next, and from maxima to sums to target logits.
struct LossPartsSize {
  int64_t rank_stride = 0, array_stride = 0;
};

// Strides: elements from one row to the next; 0: as many as there are columns.
struct ConvertSize {
  ElementCount count;
  int64_t x_stride = 0, y_stride = 0;
  bool accumulate = false;  // adds to y
};

struct UpdateSize {
  int64_t elements = 0;
  double weight_decay = 0.0;
};

// Elements of the full array, of all ranks where it is gathered or scattered; of sends and receives
// those of this rank. peer: place in the group of the axis; tag: on the pipeline axis virtual stage
// x 2 + way.
struct MessageSize {
  ElementCount count;
  int64_t element_bytes = 0;
  int32_t peer = -1, tag = 0;
  bool maximum = false;  // all_reduce: not the sum
};

using OpSize =
    std::variant<std::monostate, ElementCount, RowSize, MatrixSize, GemmSize, AttentionSize,
                 LossSize, LossPartsSize, ConvertSize, UpdateSize, MessageSize>;

// Written by the makers of plan/ops.h, as the table of plan/op_spec.h has them.
struct Op {
  OpKind kind = OpKind::join;
  Region region = Region::automatic;
  QueueId queue = QueueId::compute;
  Axis axis = Axis::world;  // of a message
  bool recompute = false;   // FLOPs are hardware FLOPs only
  int32_t layer = -1;       // L: final norm and head; -1: embedding, or what names no layer
  int32_t site = 0;         // of a dropout mask within the layer
  int32_t part = 0;         // see sequence_rows
  Operands operands;
  OpSize size;

  // Made by resolve_waits (plan/waits.h) from the operands. waits_for: operations, of each the
  // latest instance with the event of this task (event_of); one that was never issued has
  // completed. events: by which others wait for this operation; 0 where nobody does.
  std::vector<int32_t> waits_for;
  int32_t events = 0;

  // Rows of the micro-batch that the operation works on: of the rows / row_div that this rank
  // holds, [row_begin, row_begin + row_count), cut at their number. row_count = 0: the operation
  // does not scale with the micro-batch. row_div: tensor_parallel where sequence parallelism splits
  // the rows.
  int64_t row_begin = 0, row_count = 0;
  int64_t row_div = 1;
  // Operations with one row per sequence: the positions T of a sequence, else 0. The row belongs to
  // the sequence's first position; the rank that holds this position (part `part` of row_div parts)
  // works on it.
  int64_t sequence_rows = 0;
  double flops_per_row = 0.0;  // linear and attention; other kernels count as 0

  const Operand& operator[](Slot slot) const { return operands[slot]; }
  bool has(Slot slot) const { return operands.has(slot); }
  // The sizes of the operation's group.
  template <class Size>
  const Size& as() const {
    return std::get<Size>(size);
  }
  template <class Size>
  Size& as() {
    return std::get<Size>(size);
  }
};

// Access of an operation to one of its operands; never write_or_accumulate. A gradient that only
// the first micro-batch assigns counts as accumulated.
Access access_of(const Op& op, Slot slot);
// Whether the operation, issued for a micro-batch, assigns its dweight.
bool assigns_gradient(const Op& op, int64_t micro_batch);

// Where an operation departs from the table: a required operand that is missing, one that its kind
// has not, sizes of another group; "" where it does not.
std::string departure_from_spec(const Op& op);

enum class ProgramKind : uint8_t {
  begin_step,
  receive_forward,
  receive_backward,
  forward,
  backward,
  backward_last,
  weight,
  weight_last,
  end_step
};
const char* name_of(ProgramKind kind);
// Part of an evaluation, which has forward passes only.
constexpr bool is_evaluated(ProgramKind kind) {
  return kind == ProgramKind::begin_step || kind == ProgramKind::receive_forward ||
         kind == ProgramKind::forward;
}

// Operations [first, last) of Plan::ops, in the order of issue. `chunk` counts the virtual stages
// of this rank. The loop [loop_first, loop_last) within is issued `loop_times` times, each time on
// the next `loop_rows` rows of the micro-batch.
struct Program {
  ProgramKind kind;
  int32_t chunk = 0;
  int32_t first = 0, last = 0;
  int32_t loop_first = 0, loop_last = 0;  // both `first` where there is no loop
  int64_t loop_times = 0, loop_rows = 0;

  bool loops(int32_t op) const { return op >= loop_first && op < loop_last; }
  // Rows that an operation is issued for: of `held` rows of the micro-batch, those of the loop's
  // iteration that begins at first_row.
  int64_t rows_of(int32_t op, int64_t held, int64_t first_row) const {
    return loops(op) ? std::min(loop_rows, std::max<int64_t>(0, held - first_row)) : held;
  }
};

// Calls visit(op, first_row) for each operation of a program in the order of issue. first_row: rows
// of the micro-batch that earlier iterations of the loop covered, 0 outside.
template <class Visit>
void for_each_op(const Program& program, Visit visit) {
  for (int32_t i = program.first; i < program.loop_first; ++i) visit(i, int64_t{0});
  for (int64_t t = 0; t < program.loop_times; ++t)
    for (int32_t i = program.loop_first; i < program.loop_last; ++i)
      visit(i, t * program.loop_rows);
  for (int32_t i = program.loop_last; i < program.last; ++i) visit(i, int64_t{0});
}

// One program run for one micro-batch. `shared_slot` is that of buffers whose slots virtual stages
// share (plan/slots.h).
struct Task {
  int32_t program = 0;
  int32_t micro_batch = -1;  // -1: not of a micro-batch
  int32_t shared_slot = 0;
  SequenceRange sequences{};
};

// The event of an operation that others wait for, for a task of the micro-batch.
inline size_t event_of(const Op& op, int32_t micro_batch) {
  return static_cast<size_t>(micro_batch % op.events);
}

// The operation as it is issued once earlier iterations of its loop have covered `first_row` rows.
Op at_row(Op op, int64_t first_row);
inline Operand at_row(Operand operand, int64_t first_row) {
  operand.offset += first_row * operand.row_stride;
  return operand;
}

// First sequence of an operation with a row for each sequence. Example: 3 sequences of 4 positions
// over 2 parts are rows 0-5 and 6-11; part 0 holds the first positions of sequences 0 and 1 (rows 0
// and 4), part 1 that of sequence 2 (row 8).
inline int64_t first_sequence_of(const Op& op, int64_t rows, int64_t part) {
  return (part * (rows / op.row_div) + op.sequence_rows - 1) / op.sequence_rows;
}
// Rows of `op` in a task whose micro-batch has `rows` rows on this rank.
inline int64_t rows_of(const Op& op, int64_t rows) {
  if (op.sequence_rows > 0)
    return first_sequence_of(op, rows, op.part + 1) - first_sequence_of(op, rows, op.part);
  const int64_t rest = rows / op.row_div - op.row_begin;
  return rest < 0 ? 0 : rest < op.row_count ? rest : op.row_count;
}

}  // namespace gptbench
