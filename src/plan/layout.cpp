#include "plan/layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/units.h"

namespace gptbench {
namespace {

// Records for each buffer of lifetime `program` the range of operations that use it, and checks
// that no other program touches it.
void find_uses(std::vector<Buffer>& buffers, const std::vector<Program>& programs,
               const std::vector<Op>& ops) {
  std::vector<int> program_of(buffers.size(), -1);
  for (int p = 0; p < static_cast<int>(programs.size()); ++p) {
    for (int32_t i = programs[p].first; i < programs[p].last; ++i) {
      const auto use = [&](const Operand& operand) {
        if (operand.buffer < 0) return;
        Buffer& buffer = buffers[operand.buffer];
        if (buffer.lifetime != Lifetime::program) return;
        GPTBENCH_CHECK(program_of[operand.buffer] < 0 || program_of[operand.buffer] == p,
                       buffer.name + " is used by two programs");
        program_of[operand.buffer] = p;
        if (buffer.first_op < 0) buffer.first_op = i;
        buffer.last_op = i;
      };
      for (const Operand& operand : ops[i].reads) use(operand);
      for (const Operand& operand : ops[i].writes) use(operand);
    }
  }
}

bool overlap_in_time(const Buffer& a, const Buffer& b) {
  return a.first_op <= b.last_op && b.first_op <= a.last_op;
}

}  // namespace

const char* name_of(MemoryClass memory_class) {
  static const char* const names[num_memory_classes] = {
      "parameters", "gradients", "optimizer_state", "activations", "communication", "workspace"};
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
      if (buffer.first_op >= 0) temporaries.push_back(i);
      continue;
    }
    int64_t& end = bytes[static_cast<int>(buffer.memory_class)];
    buffer.offset = end;
    end += checked_product(buffer.slot_bytes, buffer.slots, buffer.name.c_str());
  }

  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [&](int a, int b) { return buffers[a].slot_bytes > buffers[b].slot_bytes; });
  const ClassBytes base = bytes;
  std::vector<int> placed;
  for (const int i : temporaries) {
    Buffer& buffer = buffers[i];
    const int c = static_cast<int>(buffer.memory_class);
    std::vector<const Buffer*> in_the_way;
    for (const int j : placed)
      if (buffers[j].memory_class == buffer.memory_class && overlap_in_time(buffers[j], buffer))
        in_the_way.push_back(&buffers[j]);
    std::sort(in_the_way.begin(), in_the_way.end(),
              [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
    int64_t at = base[c];
    for (const Buffer* other : in_the_way) {
      if (at + buffer.slot_bytes <= other->offset) break;
      at = std::max(at, other->offset + other->slot_bytes);
    }
    buffer.offset = at;
    bytes[c] = std::max(bytes[c], at + buffer.slot_bytes);
    placed.push_back(i);
  }
  return bytes;
}

int64_t total(const ClassBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

}  // namespace gptbench
