#include "memory/arena.h"

namespace gptbench {

Arena::~Arena() {
  release();
}

bool Arena::allocate() {
  for (int c = 0; c < num_memory_classes; ++c) {
    if (static_cast<MemoryClass>(c) == MemoryClass::file) continue;
    const bool on_device = is_on_device(static_cast<MemoryClass>(c));
    memory_[c] = static_cast<char*>(on_device ? device_.allocate(plan_.class_bytes[c])
                                              : device_.allocate_host(plan_.class_bytes[c]));
    if (memory_[c] == nullptr && plan_.class_bytes[c] > 0) {
      release();
      refused_ = static_cast<MemoryClass>(c);
      return false;
    }
    allocated_[c] = plan_.class_bytes[c];
  }
  return true;
}

void Arena::release() {
  for (int c = 0; c < num_memory_classes; ++c) {
    if (memory_[c] != nullptr && is_on_device(static_cast<MemoryClass>(c)))
      device_.release(memory_[c], allocated_[c]);
    else if (memory_[c] != nullptr)
      device_.release_host(memory_[c], allocated_[c]);
    memory_[c] = nullptr;
    allocated_[c] = 0;
  }
}

}  // namespace gptbench
