// What each operation of a plan reads and writes: the shapes of kernels.h, known to tests by
// themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

// transmit, arrive: the two ends of a gather.
enum class TouchKind : uint8_t { read, assign, accumulate, transmit, arrive };

// `elements` elements of an operand.
struct Touch {
  Operand operand;
  int64_t elements = 0;
  TouchKind kind = TouchKind::read;
  Slot slot = Slot::none;
};

// What an operation does to memory in a task, by the argument structs of device/kernels.h and the
// communicator's (comm/communicator.h).
std::vector<Touch> touches_of(const Plan& plan, const Op& op, const Task& task);

}  // namespace gptbench
