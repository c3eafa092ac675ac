#include "engine/input_memory.h"

#include <cstring>

#include "base/error.h"

namespace gptbench {

InputMemory::~InputMemory() {
  if (memory_ != nullptr) device_.release_host(memory_, num_sets * bytes_);
}

bool InputMemory::allocate(int64_t bytes) {
  bytes_ = reserved_bytes(bytes);
  memory_ = static_cast<char*>(device_.allocate_host(num_sets * bytes_));
  return memory_ != nullptr;
}

void* InputMemory::put(Queue& queue, void* to, const void* from, int64_t bytes) {
  if (mode_ == InputMode::upload) {
    device_.upload(queue, to, from, bytes);
    return nullptr;
  }
  GPTBENCH_CHECK(used_bytes_ + bytes <= bytes_, "page-locked memory for what a step is given");
  char* const memory = memory_ + set_ * bytes_ + used_bytes_;
  used_bytes_ += reserved_bytes(bytes);
  std::memcpy(memory, from, static_cast<size_t>(bytes));
  if (mode_ != InputMode::replay) device_.copy(queue, to, memory, bytes);
  return memory;
}

}  // namespace gptbench
