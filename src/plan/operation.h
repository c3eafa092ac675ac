// The schedule as data. A rank's step is a list of tasks; a task runs one program (the operations
// of a forward pass, a backward pass, the optimizer, ...) for one micro-batch; an operation names
// what it reads and writes, the queue it runs on and the operations it waits for. The engine
// executes the list, the projector walks the same list with clocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "plan/batch.h"
#include "plan/grid.h"

namespace gptbench {

// Work on different queues may overlap. Order between queues:
//   - an operation of another queue starts after the compute operations issued before it;
//   - a compute operation starts after the operations named in its waits_for;
//   - within a queue, work starts in the order of issue.
// Messages from rank to rank (pipeline, ring of the context axis) have a queue for each direction
// and way, so that none waits for another's peer.
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
  copy
};
constexpr int num_queues = 10;
const char* name_of(QueueId queue);

enum class OpKind : uint8_t {
  load_tokens,   // host to device: inputs, targets and token types of the micro-batch
  load_labels,   // host to device: next-sentence labels of it
  load_lengths,  // host to device: lengths of its sequences
  load_control,  // host to device: this rank's vote to stop, and the weight of a target
  fill_zero,
  join,  // computes nothing; waits for other queues
  copy,
  linear_forward,
  linear_backward_input,
  linear_backward_weight,
  linear_gelu_forward,         // linear_forward and gelu_forward (plan/fuse.h)
  linear_gelu_backward_input,  // linear_backward_input and gelu_backward
  bias_backward,
  layernorm_forward,
  layernorm_backward,
  rmsnorm_forward,
  rmsnorm_backward,
  rotary_forward,   // of q and k, in place
  rotary_backward,  // of their gradients
  attention_forward,
  attention_backward,
  gelu_forward,
  gelu_backward,
  swiglu_forward,
  swiglu_backward,
  tanh_forward,
  tanh_backward,
  first_rows_forward,   // copies the first position of each sequence
  first_rows_backward,  // adds to it
  residual_forward,
  dropout_backward,
  embedding_forward,
  embedding_backward,
  cross_entropy_statistics,
  cross_entropy_combine,
  cross_entropy_finish,
  accumulate,
  squared_norm,
  sum_scalars,
  loss_scale,
  clip_factor,
  adamw,
  convert,
  fp8_quantize,
  fp8_transpose,
  fp8_update_scales,
  load,   // from where data is offloaded to the device
  store,  // from the device to there
  all_reduce,
  reduce_scatter,
  all_gather,
  send,
  receive,
};
constexpr int num_op_kinds = static_cast<int>(OpKind::receive) + 1;
inline bool is_transfer(OpKind kind) {
  return kind == OpKind::load || kind == OpKind::store;
}
inline bool is_message(OpKind kind) {
  return kind >= OpKind::all_reduce;
}

// What the time of an operation is booked under; the classes partition the step.
enum class Region : uint8_t {
  automatic,  // the usual one of the kind (info_of)
  data,
  embedding,
  layernorm,
  linear,
  attention,
  activation,
  head_loss,
  optimizer,
  communication,
  offload
};
constexpr int num_regions = 11;

struct OpInfo {
  OpKind kind;
  const char* name;
  Region region;
};
const OpInfo& info_of(OpKind kind);
const char* name_of(Region region);

// An array argument: elements from `offset` of the buffer, within the slot of the micro-batch where
// the buffer has slots. buffer < 0: absent (null).
struct Operand {
  int buffer = -1;
  int64_t offset = 0;
  int64_t row_stride = 0;  // in a loop (Program): elements per row that earlier iterations covered
};

// An operation to wait for: its latest instance, or with `same_slot` the latest one of a
// micro-batch in the same slot. One that was never issued has completed.
struct Wait {
  int32_t op = -1;
  bool same_slot = false;
};

// Positions of reads and writes follow the argument structs of device/kernels.h and are stated in
// engine/execute.cpp.
struct Op {
  OpKind kind = OpKind::join;
  Region region = Region::automatic;
  QueueId queue = QueueId::compute;
  Axis axis = Axis::world;      // of a message
  int32_t layer = -1;           // -1 embedding, L head
  int32_t site = 0;             // of a dropout mask within the layer
  std::vector<Wait> waits_for;  // made by resolve_waits (plan/waits.h) from reads and writes
  std::vector<Operand> reads, writes;

  // Rows of the micro-batch that the operation works on: of the rows / row_div that this rank
  // holds, [row_begin, row_begin + row_count), cut at their number. row_count = 0: the operation
  // does not scale with the micro-batch. row_div: tensor_parallel where sequence parallelism splits
  // the rows.
  int64_t row_begin = 0, row_count = 0;
  int64_t row_div = 1;
  // Of operations with a row for each sequence: its positions T. The row is that of the sequence's
  // first position, and the rank that holds this works on it: of row_div parts part `part`.
  int64_t sequence_rows = 0;
  int32_t part = 0;
  int64_t K = 0, N = 0;     // inner and outer size of a linear layer; N elements a row elsewhere
  int64_t elements = 0;     // of operations that do not scale with the micro-batch
  bool accumulate = false;  // linear_backward_input
  bool transposed = false;  // linear layers: fp8 factors are (device/kernels.h, Fp8Scales)
  bool maximum = false;     // all_reduce: not the sum
  // Makes an fp8 copy of what it assigns: the last array read is its scale, the last four written
  // are the copy, the same transposed, the largest magnitude, and what sums over rows are added to
  // (absent where not wanted).
  bool copies_fp8 = false;
  // Norms: forms what it normalises. The first array read is the residual; the branch that is
  // added, with dropout, follows the weights, and the sum follows the statistics among those
  // written.
  bool adds_residual = false;
  bool recompute = false;     // FLOPs are hardware FLOPs only
  double weight_decay = 0.0;  // adamw
  double row_weight = 0.0;    // cross_entropy_finish: of a row in the loss
  // send, receive: place in the group of `axis`. Attention: context rank whose keys these are; -1
  // where each rank holds whole sequences.
  int32_t peer = -1;
  int32_t tag = 0;  // send, receive, on the pipeline axis: virtual stage x 2 + way
  // convert of rows: elements from one row of N to the next; 0: N.
  int64_t read_stride = 0, write_stride = 0;

  double flops_a_row = 0.0;  // linear and attention; other kernels count as 0
  // Payload of a message: the full array, of all ranks where gathered or scattered.
  int64_t bytes = 0, bytes_a_row = 0;
  bool signals = false;  // some operation waits for this one
};

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

// One program run for one micro-batch. `slot` selects the copy of buffers that live from forward to
// backward.
struct Task {
  int32_t program = 0;
  int32_t micro_batch = -1;  // -1: not of a micro-batch
  int32_t slot = 0;
  SequenceRange sequences;
};

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
