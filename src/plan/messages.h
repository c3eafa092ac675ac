// How large operations are cut into messages.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "plan/operation.h"

namespace gptbench {

// Non-blocking all-reduces of MPI libraries take temporary memory of the size of the message;
// pieces bound it. Other operations, and all of NCCL's, are one message each.
constexpr int64_t max_message_bytes = 16 * MiB;

constexpr int64_t messages_of(OpKind kind, int64_t bytes, bool by_nccl = false) {
  if (by_nccl || kind != OpKind::all_reduce) return bytes > 0 ? 1 : 0;
  return ceil_div(bytes, max_message_bytes);
}

}  // namespace gptbench
