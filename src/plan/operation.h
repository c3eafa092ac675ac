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

// Work on different queues may overlap; order between queues comes from Op::waits_for alone.
enum class QueueId : uint8_t { compute, tensor, context, pipeline, data, copy };
constexpr int num_queues = 6;
const char* name_of(QueueId queue);

enum class OpKind : uint8_t {
  load_tokens,   // host to device: inputs and targets of the micro-batch
  load_control,  // host to device: this rank's vote to stop
  fill_zero,
  linear_forward,
  linear_backward_input,
  linear_backward_weight,
  layernorm_forward,
  layernorm_backward,
  attention_forward,
  attention_backward,
  gelu_forward,
  gelu_backward,
  residual_forward,
  dropout_backward,
  embedding_forward,
  embedding_backward,
  cross_entropy_statistics,
  cross_entropy_finish,
  squared_norm,
  clip_factor,
  adamw,
  cast,
  all_reduce,
};
constexpr int num_op_kinds = static_cast<int>(OpKind::all_reduce) + 1;

// What the time of an operation is booked under; the classes partition the step.
enum class Region : uint8_t {
  data,
  embedding,
  layernorm,
  linear,
  attention,
  activation,
  head_loss,
  optimizer,
  communication
};
constexpr int num_regions = 9;

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
};

// Positions of reads and writes follow the argument structs of device/kernels.h and are stated
// where the operations are made (plan/layer_program.cpp, plan/step_program.cpp).
struct Op {
  OpKind kind = OpKind::fill_zero;
  Region region = Region::data;
  QueueId queue = QueueId::compute;
  Axis axis = Axis::world;  // of a collective
  int32_t layer = -1;       // -1 embedding, L head
  int32_t site = 0;         // of a dropout mask within the layer
  std::vector<int32_t>
      waits_for;  // operations (indices of Plan::ops); their latest instance counts
  std::vector<Operand> reads, writes;

  // Rows of the micro-batch's B T that the operation works on: [row_begin, row_begin + row_count),
  // cut at B T. row_count = 0: the operation does not scale with the micro-batch.
  int64_t row_begin = 0, row_count = 0;
  int64_t K = 0, N = 0;       // inner and outer size of a linear layer; N elements a row elsewhere
  int64_t elements = 0;       // of operations that do not scale with the micro-batch
  bool accumulate = false;    // linear_backward_input
  bool recompute = false;     // FLOPs are hardware FLOPs only
  double weight_decay = 0.0;  // adamw

  double flops_a_row = 0.0;  // linear and attention; other kernels count as 0
  int64_t bytes = 0;         // payload of a communication: the full array
  bool signals = false;      // an operation of another queue waits for this one (set by make_plan)
};

enum class ProgramKind : uint8_t { begin_step, forward, backward, backward_last, end_step };
const char* name_of(ProgramKind kind);

// Operations [first, last) of Plan::ops, in the order of issue.
struct Program {
  ProgramKind kind;
  int32_t first = 0, last = 0;
};

// One program run for one micro-batch. `slot` selects the copy of buffers that live from forward to
// backward.
struct Task {
  int32_t program = 0;
  int32_t micro_batch = -1;  // -1: not of a micro-batch
  int32_t slot = 0;
  SequenceRange sequences;
};

// Rows of `op` in a task whose micro-batch has `rows` = B T rows.
inline int64_t rows_of(const Op& op, int64_t rows) {
  const int64_t rest = rows - op.row_begin;
  return rest < 0 ? 0 : rest < op.row_count ? rest : op.row_count;
}

}  // namespace gptbench
