#include "plan/fp8_copies.h"

#include <algorithm>
#include <string>

#include "base/units.h"
#include "plan/fp8.h"

namespace gptbench {

// One after another where one copy holds all; the matrices of each layer from the start of a window
// where they take turns.
Fp8Copies::Fp8Copies(PlanBuilder& builder, bool all, bool transposes) {
  const FlatSpace& space = builder.plan().space;
  int64_t end = 0, largest = 0;
  for (const Unit& unit : space.units) {
    if (unit.kind != UnitKind::layer) continue;
    if (!all) end = 0;
    for (const Linear linear : all_linears) {
      const int tensor = builder.tensor(tensor_name(unit.layer, linear, "weight"));
      const size_t local = static_cast<size_t>(space.find(tensor));
      begin_[tensor] = end;
      end += round_up(space.tensors[local].size(), fp8_matrix_alignment);
    }
    largest = std::max(largest, end);
  }
  const std::string name = all ? "fp8" : "fp8.layer";
  const auto add = [&](const std::string& which) {
    return builder.add_buffer(which, MemoryClass::parameters, Lifetime::run, DType::fp8_e4m3,
                              largest);
  };
  buffers_[0] = add(name);
  if (transposes) buffers_[1] = add(name + ".transposed");
}

Operand Fp8Copies::of(int tensor, bool transposed) const {
  return {buffers_[transposed ? 1 : 0], begin_.at(tensor)};
}

}  // namespace gptbench
