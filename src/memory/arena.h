// The memory of one rank: one allocation a memory class, laid out by the plan. Nothing is allocated
// inside a step.
#pragma once

#include <array>
#include <cstdint>

#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

class Arena {
 public:
  // Both must outlive the arena. Takes no memory yet.
  Arena(Device& device, const Plan& plan) : device_(device), plan_(plan) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Takes the memory of every class but `file`, zero-filled. False, and nothing is held, where the
  // device has too little; local, so the caller agrees with the other ranks before it goes on.
  bool allocate();

  // Address of an operand in the copy for micro-batch slot `slot`; null where absent.
  void* address(const Operand& operand, int32_t slot) const {
    if (operand.buffer < 0) return nullptr;
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(operand.buffer)];
    const int64_t in_slot =
        (buffer.slots > 1 ? slot * buffer.slot_bytes : 0) + operand.offset * size_of(buffer.dtype);
    return memory_[static_cast<int>(buffer.memory_class)] + buffer.offset + in_slot;
  }

  // Place in the file of offloaded data, of an operand in class `file`.
  int64_t file_offset(const Operand& operand, int32_t slot) const {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(operand.buffer)];
    return buffer.offset + (buffer.slots > 1 ? slot * buffer.slot_bytes : 0) +
           operand.offset * size_of(buffer.dtype);
  }

  // What was asked of the device, counted here and not taken from the plan.
  int64_t allocated_bytes(MemoryClass memory_class) const {
    return allocated_[static_cast<int>(memory_class)];
  }

 private:
  void release();

  Device& device_;
  const Plan& plan_;
  std::array<char*, num_memory_classes> memory_{};
  ClassBytes allocated_{};
};

}  // namespace gptbench
