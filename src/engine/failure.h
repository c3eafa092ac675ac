// What a rank has met that ends its run.
#pragma once

#include <string>

#include "base/error.h"
#include "device/device.h"

namespace gptbench {

// The first failure of this rank; what follows may be its consequence.
class Failure {
 public:
  // False where there was a failure before, which stays.
  bool note(Exit code, const std::string& reason);
  // Notes a node that has run out of memory: Linux would end the process without a word. Looks at
  // most twice a second; what note() returned, else false. The arena is resident after the first
  // steps, and a device with memory of its own hands out none twice: it is not looked at.
  bool watch_memory(const Device& device);

  Exit code() const { return code_; }                    // ok where there was none
  const std::string& reason() const { return reason_; }  // "" where there was none

 private:
  Exit code_ = Exit::ok;
  std::string reason_;
  double watched_s_ = 0.0;  // by now_s()
};

}  // namespace gptbench
