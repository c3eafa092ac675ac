#include "measure/caches.h"

#include <glob.h>

#include <cstdlib>
#include <map>

#include "base/units.h"
#include "measure/system_info.h"

namespace gptbench {
namespace {

// "32768K", as the kernel writes sizes of caches; 0 for anything else.
int64_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const long long kib = std::strtoll(text.c_str(), &end, 10);
  return end != text.c_str() && std::string(end) == "K" && kib > 0 ? kib * KiB : 0;
}

}  // namespace

int64_t last_cache_bytes(const std::string& root) {
  glob_t found{};
  const std::string pattern = root + "/sys/devices/system/cpu/cpu[0-9]*/cache/index*/";
  int last_level = 0;
  std::map<std::string, int64_t> last;  // bytes, by the processors that share the cache
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string cache = found.gl_pathv[i];
      const int level = std::atoi(first_line(cache + "level").c_str());
      if (level < last_level || first_line(cache + "type") == "Instruction") continue;
      if (level > last_level) last.clear();
      last_level = level;
      last[first_line(cache + "shared_cpu_list")] = bytes_of(first_line(cache + "size"));
    }
  ::globfree(&found);
  int64_t sum = 0;
  for (const auto& [processors, bytes] : last) sum += bytes;
  return sum;
}

}  // namespace gptbench
