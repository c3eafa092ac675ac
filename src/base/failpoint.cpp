#include "base/failpoint.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace gptbench {
namespace {

void compute_for(double time_s) {
  for (const double start_s = now_s(); now_s() < start_s + time_s;) continue;
}

}  // namespace

bool failpoint_requested() {
  static const bool requested = std::getenv("GPTBENCH_FAILPOINT") != nullptr;
  return requested;
}

void failpoint(const char* name) {
  if (!failpoint_requested()) return;
  static std::mutex mutex;  // a checkpoint is written by two threads
  const std::lock_guard<std::mutex> lock(mutex);
  static std::map<std::string, int> calls;
  const int call = ++calls[name];
  const std::string requested = std::getenv("GPTBENCH_FAILPOINT");
  const std::string wanted = requested.substr(0, requested.find('/'));
  if (wanted != name + (":" + std::to_string(call)) && (call != 1 || wanted != name)) return;
  const std::string what = requested.substr(wanted.size());
  if (what == "/hang") {
    for (;;) ::pause();
  } else if (what == "/error") {
    throw Error(Exit::peer, std::string("the failpoint ") + name + " was reached");
  } else if (what == "/busy") {
    compute_for(8.0);
  } else if (what == "/starved") {
    for (int i = 0; i < 80; ++i) {
      compute_for(0.0005);
      ::usleep(99500);
    }
  } else {
    std::raise(what == "/stop" ? SIGSTOP : SIGKILL);
  }
}

}  // namespace gptbench
