// A plan with nothing but messages.
#pragma once

#include "plan/plan.h"

namespace gptbench {

// Collectives along the axis, and a ring: messages to the next rank of the group and from the one
// before, forward and backward.
inline Plan plan_of_messages(const Grid& grid, int64_t rank, Axis axis) {
  Plan plan;
  plan.grid = grid;
  plan.rank = rank;
  Op op;
  op.kind = OpKind::all_reduce;
  op.axis = axis;
  op.size = MessageSize{};
  MessageSize& size = op.as<MessageSize>();
  plan.ops.push_back(op);
  const int64_t n = grid.size_of(axis), place = grid.place_of(rank, axis);
  for (int tag = 0; tag < 2 && n > 1; ++tag) {
    size.tag = tag;
    op.kind = OpKind::send;
    size.peer = static_cast<int32_t>((place + 1) % n);
    plan.ops.push_back(op);
    op.kind = OpKind::receive;
    size.peer = static_cast<int32_t>((place + n - 1) % n);
    plan.ops.push_back(op);
  }
  return plan;
}

}  // namespace gptbench
