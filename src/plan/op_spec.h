// The table of operations (plan/op_table.inc): for each kind its name, the region that its time is
// booked under, the group of its sizes (plan/operation.h), and its operands by name. Makers
// (plan/ops.h) write operations, PlanBuilder::emit checks them against the table, and engine, tests
// and printers read them by the same names.
#pragma once

#include <cstdint>

namespace gptbench {

// Kinds of operations: the names of the table.
enum class OpKind : uint8_t {
#define GPTBENCH_OP(name, ...) name,
#include "plan/op_table.inc"
#undef GPTBENCH_OP
};
constexpr int num_op_kinds = static_cast<int>(OpKind::receive) + 1;
inline bool is_transfer(OpKind kind) {
  return kind == OpKind::load || kind == OpKind::store;
}
inline bool is_message(OpKind kind) {
  return kind >= OpKind::all_reduce;
}

// Region that the time of an operation is booked under; regions partition the step.
enum class Region : uint8_t {
  automatic,  // the usual one of the kind (spec_of)
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
const char* name_of(Region region);

// Names of operands. A name means the same array in every kind that has it; most are those of the
// kernels' arguments (device/kernels.h). In this order: any kind; linear layers (`left` and `right`
// are the fp8 factors of a GEMM, `pre` is what GELU was formed from); norms and the residual stream
// (sum = residual + dropout(branch)); attention (`kv` holds keys and values side by side);
// embedding; loss (`parts`: statistics of all tensor-parallel ranks); scalars and state of the loss
// scale; update; fp8 copies of what an operation assigns, and what their scales follow from;
// messages (`whole`: an array spread over ranks, `part`: this rank's).
// clang-format off
#define GPTBENCH_SLOTS(X)                                                                 \
  X(x) X(y) X(dx) X(dy)                                                                   \
  X(weight) X(bias) X(dweight) X(dbias) X(left_scale) X(right_scale) X(activation) X(pre) \
  X(mean) X(rstd) X(residual) X(branch) X(sum)                                            \
  X(q) X(kv) X(out) X(lse) X(dout) X(dq) X(dkv) X(lengths)                                \
  X(tokens) X(types) X(token_table) X(position_table) X(type_table)                       \
  X(dtoken_table) X(dposition_table) X(dtype_table)                                       \
  X(targets) X(labels) X(logits) X(parts) X(row_max) X(row_sum) X(target_logit)           \
  X(loss_sum) X(row_weight)                                                               \
  X(stop_votes) X(norm2) X(clip_factor) X(loss_scale) X(next_loss_scale) X(scale_state)   \
  X(skip)                                                                                 \
  X(gradient) X(master) X(moment1) X(moment2) X(working)                                  \
  X(fp8_scale) X(fp8_copy) X(fp8_transposed) X(amax) X(column_sums) X(fp8_inverse)        \
  X(amax_history) X(history_position)                                                     \
  X(whole) X(part)
// clang-format on

enum class Slot : uint8_t {
  none,
#define GPTBENCH_SLOT(name) name,
  GPTBENCH_SLOTS(GPTBENCH_SLOT)
#undef GPTBENCH_SLOT
};
const char* name_of(Slot slot);

// write: every element is overwritten. accumulate: elements are read and written, be it that
// something is added to them or that they change in place. write_or_accumulate: what the sizes of
// the operation say (a conversion that adds, a further block of keys, a further micro-batch).
enum class Access : uint8_t { read, write, accumulate, write_or_accumulate };

// Factors of an operand's extent; all are local to the rank.
enum class Dim : uint8_t {
  one,
  R,         // rows that the operation works on
  R_padded,  // the same, padded to the multiple that transposed fp8 arrays have
  R_factor,  // R_padded where the GEMM's factors are transposed, else R
  n,         // elements, where the kind is of any array
  full,      // elements of the array that a message is about, on all ranks
  share,     // those of one rank
  C,         // columns
  C2,        // 2 C
  K,         // inner size of a linear layer
  N,         // outer size of it
  R_q,       // rows of queries and of keys that attention works on
  R_k,
  HD,              // channels of q: heads times head size
  KV,              // channels of k and v
  H,               // heads
  B,               // sequences of the micro-batch
  V,               // vocabulary
  T,               // positions of a whole sequence
  types,           // kinds of segments
  ranks3,          // three statistics for each tensor-parallel rank
  state,           // numbers of the loss scale's state
  inverse_stride,  // fp8_inverse_stride
  history          // steps of the history of fp8 tensors
};

// An operand of `rows` x `columns` elements.
struct SlotSpec {
  Slot slot = Slot::none;
  Access access = Access::read;
  Dim rows = Dim::one, columns = Dim::one;
  bool optional = false;
};

// Groups of sizes, in the order of OpSize's alternatives (plan/operation.h).
enum class SizeGroup : uint8_t {
  none,
  elements,
  rows,
  matrix,
  gemm,
  attention,
  loss,
  loss_parts,
  convert,
  update,
  message
};

constexpr int max_operands = 14;

struct OpSpec {
  OpKind kind;
  const char* name;
  Region region;
  SizeGroup sizes;
  SlotSpec slots[max_operands];  // up to the first Slot::none

  const SlotSpec* begin() const { return slots; }
  const SlotSpec* end() const;
  const SlotSpec* find(Slot slot) const;  // null: the kind has no such operand
};
const OpSpec& spec_of(OpKind kind);

}  // namespace gptbench
