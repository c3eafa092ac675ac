// Logical processors that threads may use: those of a job or a container, not those of the node.
#pragma once

#include <sys/types.h>

#include <set>

namespace gptbench {

// Those that the thread, 0 for the calling one, and the threads that it starts may run on; empty:
// not known.
std::set<int> processors_of(pid_t thread = 0);

}  // namespace gptbench
