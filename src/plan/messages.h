// How large operations are cut into messages.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "plan/operation.h"

namespace gptbench {

// Non-blocking all-reduces of MPI libraries take temporary memory of the size of the message; pieces
// bound it. Other operations are one message each.
constexpr int64_t max_message_bytes = 16 * MiB;

constexpr int64_t messages_of(OpKind kind, int64_t bytes) {
  return kind == OpKind::all_reduce ? ceil_div(bytes, max_message_bytes) : 1;
}

}  // namespace gptbench
