#include "engine/failure.h"

#include "base/clock.h"
#include "base/units.h"

namespace gptbench {
namespace {

// Below this a step is not begun: one page of each buffer more would end the process.
constexpr int64_t min_available_bytes = 32 * MiB;
constexpr double watch_interval_s = 0.5;  // a look takes some 0.1 ms

}  // namespace

bool Failure::note(Exit code, const std::string& reason) {
  if (code_ != Exit::ok) return false;
  code_ = code;
  reason_ = reason;
  return true;
}

void Failure::watch_memory(const Device& device) {
  if (!device.info().identity.empty() || now_s() < watched_s_ + watch_interval_s) return;
  watched_s_ = now_s();
  const int64_t available = device.memory_offer().available_bytes;
  if (available < min_available_bytes)
    note(Exit::out_of_memory, "the node has " + format_bytes(available) + " left");
}

}  // namespace gptbench
