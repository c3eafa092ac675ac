// Sizes of the processor's caches.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

// Bytes of the last level of caches of all processors that the system shows, a cache that several
// share counted once; 0 where the system does not say. `root` stands before /sys. Not what sysconf
// says: in a virtual machine with a few cores of a processor that is the cache of all its cores.
int64_t last_cache_bytes(const std::string& root = "");

}  // namespace gptbench
