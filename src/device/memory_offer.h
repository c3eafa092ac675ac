// Memory that this process can use. Linux grants more memory than it has, so the limits of the node
// and of its control groups are read before memory is touched.
#pragma once

#include <string>

#include "device/device.h"

namespace gptbench {

// The minimum over the node (MemTotal and MemAvailable of /proc/meminfo), the NUMA nodes that the
// process's cpuset allows and that are not memory of a GPU, and every memory control group from the
// process's own up to the root, version 1 or 2; page cache and slabs that can be dropped count as
// available. Files are read below `root` ("": this machine; tests pass a folder).
MemoryOffer read_memory_offer(const std::string& root = "");

}  // namespace gptbench
