// Memory of this process as the operating system counts it: an independent check of the plan.
#pragma once

#include <cstdint>

namespace gptbench {

struct HostMemory {
  int64_t resident_bytes = 0;       // now (VmRSS); 0 where the system does not tell
  int64_t peak_resident_bytes = 0;  // high-water mark (VmHWM) since start or the last reset
};

// Memory of this process from /proc/self/status; without that file the peak is getrusage's, which
// cannot be reset.
HostMemory host_memory();

// Sets the high-water mark to the memory resident now (/proc/self/clear_refs). False where the
// system does not permit it; the mark then goes on covering everything since the start of the
// process.
bool reset_host_memory_peak();

}  // namespace gptbench
