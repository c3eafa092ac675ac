#include "memory/arena.h"

namespace gptbench {

Arena::~Arena() {
  release();
}

bool Arena::allocate() {
  for (int c = 0; c < num_memory_classes; ++c) {
    if (static_cast<MemoryClass>(c) == MemoryClass::file) continue;
    memory_[c] = static_cast<char*>(device_.allocate(plan_.class_bytes[c]));
    if (memory_[c] == nullptr && plan_.class_bytes[c] > 0) {
      release();
      return false;
    }
    allocated_[c] = plan_.class_bytes[c];
  }
  return true;
}

void Arena::release() {
  for (int c = 0; c < num_memory_classes; ++c) {
    if (memory_[c] != nullptr) device_.release(memory_[c], allocated_[c]);
    memory_[c] = nullptr;
    allocated_[c] = 0;
  }
}

}  // namespace gptbench
