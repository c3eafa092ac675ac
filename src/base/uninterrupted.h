// System calls that a signal may end before they have done anything.
#pragma once

#include <cerrno>

namespace gptbench {

// Result of `call`, which is repeated while it ends with EINTR. Network and FUSE file systems
// return it from calls that a local disk never interrupts, fsync among them, and this program
// installs its signal handlers without SA_RESTART (run/signals.h).
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace gptbench
