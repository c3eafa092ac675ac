#include "base/processors.h"

#include <sched.h>

#include <memory>

namespace gptbench {

// Grows the mask until the kernel accepts it: nodes may have more than CPU_SETSIZE processors.
std::set<int> processors_of(pid_t thread) {
  std::set<int> processors;
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(static_cast<size_t>(capacity)), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    if (mask == nullptr || sched_getaffinity(thread, bytes, mask.get()) != 0) continue;
    for (int processor = 0; processor < capacity; ++processor)
      if (CPU_ISSET_S(static_cast<size_t>(processor), bytes, mask.get()))
        processors.insert(processor);
    break;
  }
  return processors;
}

}  // namespace gptbench
