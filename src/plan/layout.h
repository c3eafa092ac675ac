// Buffers of one rank and where they lie. Offsets are fixed here, before anything is allocated: one
// allocation per memory class, nothing allocated inside a step.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "plan/operation.h"

namespace gptbench {

enum class MemoryClass : uint8_t {
  parameters,
  gradients,
  optimizer_state,
  activations,
  communication,
  workspace,
  host,  // offloaded: host memory, the second pool
  file   // offloaded: places in a file, no memory
};
constexpr int num_memory_classes = 8;
// Whether a class lies in the device's pool, which device_memory_gib bounds.
constexpr bool is_on_device(MemoryClass c) {
  return c != MemoryClass::host && c != MemoryClass::file;
}
const char* name_of(MemoryClass memory_class);

enum class Lifetime : uint8_t {
  run,          // from set-up to the end
  micro_batch,  // from one pass of a micro-batch to a later one; a slot for each in between
  program,      // within a program (or each of several): shares memory with others that are not in
                // use at the same time
};

struct Buffer {
  std::string name;  // "activations::h.3.qkv"
  MemoryClass memory_class = MemoryClass::activations;
  Lifetime lifetime = Lifetime::run;
  DType dtype = DType::f32;
  int64_t elements = 0;  // of one slot
  int64_t slots = 1;     // see plan/slots.h
  int shares = -1;       // buffer whose slots virtual stages share, itself or one before; -1: none

  // Set by assign_offsets:
  int64_t offset = 0;      // bytes from the start of the class
  int64_t slot_bytes = 0;  // distance of slots
  // First and last operation of each program that uses it; lifetime `program` only.
  struct Use {
    int32_t first_op = -1, last_op = -1;
  };
  std::vector<Use> uses;
  int64_t bytes() const { return slot_bytes * slots; }
};

// The slot that a task uses.
inline int64_t slot_of(const Buffer& buffer, const Task& task) {
  return buffer.shares >= 0 ? task.shared_slot : task.micro_batch % buffer.slots;
}

constexpr int64_t buffer_alignment = 256;  // bytes; what GPU kernels and SIMD loads want, and more

// Sizes of the allocations, one a class.
using ClassBytes = std::array<int64_t, num_memory_classes>;

// Gives every buffer its offset. Buffers of lifetime `program` are placed behind the others of
// their class, first fit by descending size, so that two overlap in memory only when no operation
// of one program lies within the use of both. Returns the bytes of each class.
ClassBytes assign_offsets(std::vector<Buffer>& buffers, const std::vector<Program>& programs,
                          const std::vector<Op>& ops);

// Memory of a rank: of the device's pool alone, and with that of the host.
int64_t device_total(const ClassBytes& bytes);
int64_t total(const ClassBytes& bytes);

}  // namespace gptbench
