// How much memory this process can really get: Linux hands out memory that it does not have, so a
// host asks the node and its control groups before it touches any.
#pragma once

#include <string>

#include "device/device.h"

namespace gptbench {

// The tightest of the node (MemTotal and MemAvailable of /proc/meminfo) and of every memory control
// group from the process's own up to the root, version 1 or 2; page cache that a group can drop
// counts as available. Files are read below `root` ("" is the machine itself; tests pass a folder).
MemoryOffer read_memory_offer(const std::string& root = "");

}  // namespace gptbench
