// Wall-clock time.
#pragma once

#include <chrono>

namespace gptbench {

// Seconds on a clock that never steps back; only differences mean something.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gptbench
