#include "measure/host_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/units.h"

namespace gptbench {

HostMemory host_memory() {
  HostMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    int64_t kib = 0;
    if (!(fields >> name >> kib)) continue;
    if (name == "VmRSS:") memory.resident_bytes = kib * KiB;
    if (name == "VmHWM:") memory.peak_resident_bytes = kib * KiB;
  }
  if (memory.peak_resident_bytes == 0) {
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) == 0) memory.peak_resident_bytes = usage.ru_maxrss * KiB;
  }
  return memory;
}

bool reset_host_memory_peak() {
  std::ofstream clear_refs("/proc/self/clear_refs");
  clear_refs << "5" << std::flush;  // 5: reset the peak resident set size (proc(5))
  return clear_refs.good();
}

}  // namespace gptbench
