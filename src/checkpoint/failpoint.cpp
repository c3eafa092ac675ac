#include "checkpoint/failpoint.h"

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace gptbench {

void failpoint(const char* name) {
  const char* requested = std::getenv("GPTBENCH_FAILPOINT");
  if (requested == nullptr) return;
  static std::mutex mutex;  // a checkpoint is written by two threads
  const std::lock_guard<std::mutex> lock(mutex);
  static std::map<std::string, int> calls;
  const int call = ++calls[name];
  const std::string wanted = requested;
  if (wanted == name + (":" + std::to_string(call)) || (call == 1 && wanted == name))
    std::raise(SIGKILL);
}

}  // namespace gptbench
