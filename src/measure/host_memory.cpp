#include "measure/host_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/units.h"

namespace gptbench {

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    int64_t kib = 0;
    if (fields >> name >> kib && name == "VmHWM:" && kib > 0) return kib * KiB;
  }
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * KiB : 0;
}

bool reset_host_memory_peak() {
  std::ofstream clear_refs("/proc/self/clear_refs");
  clear_refs << "5" << std::flush;  // 5: reset the peak resident set size (proc(5))
  return clear_refs.good();
}

}  // namespace gptbench
