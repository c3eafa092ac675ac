#include "plan/layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace gptbench {
namespace {

// Records for each buffer of lifetime `program` the ranges of operations that use it: the whole
// loop where a loop does, since the next iteration follows its last operation. A message on the way
// keeps its buffers until the operation that waits for it, which touches them.
void find_uses(std::vector<Buffer>& buffers, const std::vector<Program>& programs,
               const std::vector<Op>& ops) {
  for (const Program& program : programs) {
    for (int32_t i = program.first; i < program.last; ++i) {
      const int32_t begin = program.loops(i) ? program.loop_first : i;
      const int32_t end = program.loops(i) ? program.loop_last - 1 : i;
      for (const Operands::Named& each : ops[static_cast<size_t>(i)].operands) {
        Buffer& buffer = buffers[static_cast<size_t>(each.operand.buffer)];
        if (buffer.lifetime != Lifetime::program) continue;
        if (buffer.uses.empty() || buffer.uses.back().first_op < program.first)
          buffer.uses.push_back({begin, end});
        buffer.uses.back().last_op = end;
      }
    }
  }
}

bool overlap_in_time(const Buffer& a, const Buffer& b) {
  for (const Buffer::Use& x : a.uses)
    for (const Buffer::Use& y : b.uses)
      if (x.first_op <= y.last_op && y.first_op <= x.last_op) return true;
  return false;
}

}  // namespace

const char* name_of(MemoryClass memory_class) {
  static const char* const names[num_memory_classes] = {
      "parameters", "gradients", "optimizer_state", "activations", "communication", "workspace",
      "host",       "file"};
  return names[static_cast<int>(memory_class)];
}

ClassBytes assign_offsets(std::vector<Buffer>& buffers, const std::vector<Program>& programs,
                          const std::vector<Op>& ops) {
  find_uses(buffers, programs, ops);
  ClassBytes bytes{};
  std::vector<int> temporaries;
  for (int i = 0; i < static_cast<int>(buffers.size()); ++i) {
    Buffer& buffer = buffers[i];
    buffer.slot_bytes =
        round_up(checked_product(buffer.elements, size_of(buffer.dtype), buffer.name.c_str()),
                 buffer_alignment);
    if (buffer.lifetime == Lifetime::program) {
      if (!buffer.uses.empty()) temporaries.push_back(i);
      continue;
    }
    if (buffer.shares >= 0 && buffer.shares < i) {
      buffer.offset = buffers[static_cast<size_t>(buffer.shares)].offset;
      continue;
    }
    int64_t& end = bytes[static_cast<int>(buffer.memory_class)];
    buffer.offset = end;
    end = checked_sum(end, checked_product(buffer.slot_bytes, buffer.slots, buffer.name.c_str()),
                      name_of(buffer.memory_class));
  }

  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [&](int a, int b) { return buffers[a].slot_bytes > buffers[b].slot_bytes; });
  const ClassBytes base = bytes;
  std::array<std::vector<const Buffer*>, num_memory_classes> placed;  // by ascending offset
  for (const int i : temporaries) {
    Buffer& buffer = buffers[i];
    const size_t c = static_cast<size_t>(buffer.memory_class);
    int64_t at = base[c];
    for (const Buffer* other : placed[c]) {
      if (checked_sum(at, buffer.slot_bytes, "memory") <= other->offset) break;
      if (overlap_in_time(*other, buffer)) at = std::max(at, other->offset + other->slot_bytes);
    }
    buffer.offset = at;
    bytes[c] = std::max(bytes[c], checked_sum(at, buffer.slot_bytes, "memory"));
    const auto above = std::upper_bound(
        placed[c].begin(), placed[c].end(), at,
        [](int64_t offset, const Buffer* other) { return offset < other->offset; });
    placed[c].insert(above, &buffer);
  }
  int64_t sum = 0;
  for (const int64_t each : bytes) sum = checked_sum(sum, each, "memory of a rank");
  return bytes;
}

int64_t device_total(const ClassBytes& bytes) {
  int64_t sum = 0;
  for (int c = 0; c < num_memory_classes; ++c)
    if (is_on_device(static_cast<MemoryClass>(c))) sum += bytes[static_cast<size_t>(c)];
  return sum;
}

int64_t total(const ClassBytes& bytes) {
  return device_total(bytes) + bytes[static_cast<size_t>(MemoryClass::host)];
}

}  // namespace gptbench
