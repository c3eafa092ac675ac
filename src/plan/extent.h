// The symbols of the table of operations (plan/op_spec.h) in numbers, and the bytes that follow.
#pragma once

#include "plan/plan.h"

namespace gptbench {

// Value of `dim` in `op`, in a task whose micro-batch has `held_rows` rows on this rank.
int64_t value_of(const Plan& plan, const Op& op, Dim dim, int64_t held_rows);

// Elements of an operand that the operation touches.
inline int64_t elements_of(const Plan& plan, const Op& op, const SlotSpec& spec,
                           int64_t held_rows) {
  return value_of(plan, op, spec.rows, held_rows) * value_of(plan, op, spec.columns, held_rows);
}

// Bytes of the operands that an operation moves, each once, or twice where it is accumulated to. Of
// a table of embeddings at most one row per row of the operation.
int64_t bytes_moved(const Plan& plan, const Op& op, int64_t held_rows);

}  // namespace gptbench
