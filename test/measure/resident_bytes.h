// Memory of this process that is resident now.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace gptbench {

// From /proc/self/statm (proc(5)); 0 where the system has no such file.
inline int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

}  // namespace gptbench
