// The memory of one rank: one allocation per memory class, laid out by the plan. Nothing is
// allocated inside a step.
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

  // Allocates every class but `file`, zero-filled. False where there is too little memory for one
  // of them, refused(); nothing is held then. Local: the caller agrees with the other ranks before
  // it goes on.
  bool allocate();
  MemoryClass refused() const { return refused_; }

  // Address of an operand of a task; null where the operand is absent. No task: its buffer has no
  // slots.
  void* address(const Operand& operand, const Task& task = {}) const {
    if (operand.buffer < 0) return nullptr;
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(operand.buffer)];
    return memory_[static_cast<int>(buffer.memory_class)] + offset(operand, task);
  }

  // Byte offset of an operand in the allocation of its class; of class `file`, in the file of
  // offloaded data.
  int64_t offset(const Operand& operand, const Task& task = {}) const {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(operand.buffer)];
    return buffer.offset + slot_of(buffer, task) * buffer.slot_bytes +
           operand.offset * size_of(buffer.dtype);
  }

  // Bytes requested from the device; counted here, not taken from the plan.
  int64_t allocated_bytes(MemoryClass memory_class) const {
    return allocated_[static_cast<int>(memory_class)];
  }

 private:
  void release();

  Device& device_;
  const Plan& plan_;
  std::array<char*, num_memory_classes> memory_{};
  ClassBytes allocated_{};
  MemoryClass refused_{};  // where allocate() has failed
};

}  // namespace gptbench
