#include "plan/activation_offload.h"

#include "base/units.h"

namespace gptbench {

int ActivationOffload::keep(Pass formed_by, int64_t group, const std::string& name,
                            const std::string& what, DType dtype, int64_t columns, int64_t row_div,
                            bool stays) {
  const Plan& plan = stage_.plan;
  const ParallelConfig& parallel = plan.config.parallel;
  if (stays || !contains(parallel.offload, Offload::activations))
    return stage_.kept(name + what, dtype, columns, row_div);
  // Virtual stages of a rank share the windows: their programs run one after the other.
  const std::string shared = "window." + std::to_string(group % 2) + "." + what;
  int window = stage_.builder.find_buffer(MemoryClass::activations, shared);
  if (window < 0)
    window = stage_.builder.add_activation(shared, Lifetime::micro_batch, dtype, columns, row_div);
  // Backward directly follows forward where a stage has both ends: the last two groups stay.
  const bool returns_at_once = stage_.chunk.has_embedding && stage_.chunk.has_head;
  if (formed_by == forward && returns_at_once && group + 2 >= groups_) return window;
  const bool file = parallel.offload_target == OffloadTarget::file;
  const int away = stage_.builder.add_buffer(
      stage_.prefix + name + what, file ? MemoryClass::file : MemoryClass::host,
      Lifetime::micro_batch, dtype,
      checked_product(plan.micro_batch_rows / row_div, columns, what.c_str()), plan.slots);
  kept_[{formed_by, group}].push_back({window, away, columns, row_div});
  return window;
}

void ActivationOffload::transfer(OpKind kind, Pass formed_by, int64_t group) {
  for (const Kept& array : kept_[{formed_by, group}]) {
    const Operand window{array.window}, away{array.away};
    const ElementCount count = per_row(array.columns);
    const ops::Rows rows{-1, array.row_div};
    stage_.emit(kind == OpKind::load ? ops::load(count, away, window, rows)
                                     : ops::store(count, window, away, rows));
  }
}

}  // namespace gptbench
