// Memory of this process as the operating system counts it: an independent check of the plan.
#pragma once

#include <cstdint>

namespace gptbench {

// High-water mark of the resident memory of this process since its start or the last reset (VmHWM
// of /proc/self/status); without that file the mark is getrusage's, which cannot be reset.
int64_t peak_resident_bytes();

// Sets the high-water mark to the memory resident now (/proc/self/clear_refs). False where the
// system does not permit it; the mark then goes on covering everything since the start of the
// process.
bool reset_host_memory_peak();

}  // namespace gptbench
