// The failure of a rank that ends the run.
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
  // Notes that the node runs out of memory, where Linux would end the process without a message.
  // Reads the memory at most twice a second. A device with memory of its own cannot run out after
  // the arena is allocated.
  void watch_memory(const Device& device);

  Exit code() const { return code_; }                    // ok where there was none
  const std::string& reason() const { return reason_; }  // "" where there was none

 private:
  Exit code_ = Exit::ok;
  std::string reason_;
  double watched_s_ = 0.0;  // by now_s()
};

}  // namespace gptbench
