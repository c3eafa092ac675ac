// How large operations are cut into messages.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace gptbench {

// Non-blocking collectives of MPI libraries take temporary memory of the size of the message;
// pieces bound it, and keep counts below 2^31 elements.
constexpr int64_t max_message_bytes = 16 * MiB;

constexpr int64_t messages_of(int64_t bytes) {
  return ceil_div(bytes, max_message_bytes);
}

}  // namespace gptbench
