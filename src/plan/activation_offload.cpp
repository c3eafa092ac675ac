#include "plan/activation_offload.h"

#include "base/units.h"

namespace gptbench {

ActivationOffload::ActivationOffload(PlanBuilder& builder, int64_t groups, int64_t slots,
                                     bool returns_at_once)
    : builder_(builder),
      groups_(groups),
      slots_(slots),
      offloads_(contains(builder.plan().config.parallel.offload, Offload::activations)),
      returns_at_once_(returns_at_once) {}

int ActivationOffload::keep(Pass formed_by, int64_t group, const std::string& prefix,
                            const std::string& what, DType dtype, int64_t columns, int64_t row_div,
                            bool stays) {
  if (!offloads_ || stays)
    return builder_.add_activation(prefix + what, Lifetime::micro_batch, dtype, columns, row_div,
                                   slots_);
  // Virtual stages of a rank share the windows: their programs run one after the other.
  const std::string name = "window." + std::to_string(group % 2) + "." + what;
  int window = builder_.find_buffer(MemoryClass::activations, name);
  if (window < 0)
    window = builder_.add_activation(name, Lifetime::micro_batch, dtype, columns, row_div);
  if (formed_by == forward && returns_at_once_ && group + 2 >= groups_) return window;
  const bool file = builder_.plan().config.parallel.offload_target == OffloadTarget::file;
  const int away = builder_.add_buffer(
      prefix + what, file ? MemoryClass::file : MemoryClass::host, Lifetime::micro_batch, dtype,
      checked_product(builder_.plan().micro_batch_rows / row_div, columns, what.c_str()), slots_);
  kept_[{formed_by, group}].push_back({window, away, columns, row_div});
  return window;
}

void ActivationOffload::transfer(OpKind kind, Pass formed_by, int64_t group) {
  for (const Kept& array : kept_[{formed_by, group}]) {
    const Operand window{array.window}, away{array.away};
    const ElementCount count = per_row(array.columns);
    const ops::Rows rows{-1, array.row_div};
    builder_.emit(kind == OpKind::load ? ops::load(count, away, window, rows)
                                       : ops::store(count, window, away, rows));
  }
}

}  // namespace gptbench
