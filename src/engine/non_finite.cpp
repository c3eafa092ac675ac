#include "engine/non_finite.h"

#include <algorithm>
#include <vector>

#include "base/convert.h"
#include "base/pieces.h"
#include "plan/extent.h"
#include "plan/print_operations.h"
#include "plan/tensor_parts.h"

namespace gptbench {
namespace {

// Types that have numbers which are not finite, and are wide enough for activations.
bool is_real(DType type) {
  return type == DType::f32 || type == DType::f64 || type == DType::bf16 || type == DType::f16;
}

// Elements that copy(first, n, memory) copies to the host piece by piece.
template <class Copy>
bool are_finite(DType type, int64_t elements, const Copy& copy) {
  const int64_t piece = std::min(staging_elements, elements);
  std::vector<char> stored(static_cast<size_t>(piece * size_of(type)));
  for (int64_t first = 0; first < elements; first += piece) {
    const int64_t n = std::min(piece, elements - first);
    copy(first, n, stored.data());
    if (!all_finite(stored.data(), type, n)) return false;
  }
  return true;
}

// Minus infinity stands there for nothing yet, or for no keys.
bool may_be_infinite(Slot slot) {
  return slot == Slot::lse || slot == Slot::row_max || slot == Slot::parts;
}

}  // namespace

NonFinite non_finite_weights(Resources& resources) {
  const Plan& plan = resources.plan;
  for (const Role role : {Role::master, Role::working}) {
    const Representation& copy = plan.representation(role);
    for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
      bool finite = true;
      for_each_part(plan, copy, i, Visit::all, [&](const TensorPart& part) {
        finite =
            finite && are_finite(copy.dtype, part.count, [&](int64_t first, int64_t n, void* to) {
              resources.fetch({part.at.buffer, part.at.offset + first}, to,
                              n * size_of(copy.dtype));
            });
      });
      const int tensor = plan.space.tensors[i].tensor;
      if (!finite)
        return {"tensor " + plan.tensors[static_cast<size_t>(tensor)].name + " of the weights",
                role == Role::master};
    }
  }
  return {};
}

bool NonFiniteSearch::is_finite(const Op& op, const Task& task, const SlotSpec& spec,
                                int64_t first_row) const {
  const Plan& plan = resources_.plan;
  Operand operand = at_row(op[spec.slot], first_row);
  const Buffer& buffer = resources_.buffer_of(operand);
  if (!is_real(buffer.dtype) || may_be_infinite(spec.slot)) return true;
  const int64_t held_rows = task.sequences.count * plan.T_local() - first_row;
  // Rotary positions, attention's operations on rows, turn a part of each; all of it is looked at.
  const bool is_part =
      spec_of(op.kind).region == Region::attention && std::holds_alternative<RowSize>(op.size);
  const int64_t elements =
      is_part ? rows_of(op, held_rows) * plan.local.qkv() : elements_of(plan, op, spec, held_rows);
  return are_finite(buffer.dtype, elements, [&](int64_t first, int64_t n, void* to) {
    Operand from = operand;
    from.offset += first;
    resources_.device.download(resources_.queues[QueueId::compute], to,
                               resources_.arena.address(from, task), n * size_of(buffer.dtype));
  });
}

void NonFiniteSearch::look(const Op& op, const Task& task, int64_t first_row) {
  if (!found_.what.empty() || op.queue != QueueId::compute || op.kind == OpKind::join) return;
  const Plan& plan = resources_.plan;
  for (const SlotSpec& spec : spec_of(op.kind)) {
    if (!op.has(spec.slot) || access_of(op, spec.slot) == Access::read ||
        is_finite(op, task, spec, first_row))
      continue;
    const auto name = [&](Slot slot) {
      return std::string(name_of(slot)) + " = " + place_text(plan, op[slot]);
    };
    found_.what = spec_of(op.kind).name;
    if (op.layer >= 0)
      found_.what += op.layer < plan.shape.L ? ", layer " + std::to_string(op.layer) : ", head";
    if (task.micro_batch >= 0) found_.what += ", micro-batch " + std::to_string(task.micro_batch);
    found_.what += ", assigns " + name(spec.slot);
    found_.here = true;
    for (const SlotSpec& read : spec_of(op.kind)) {
      if (!op.has(read.slot) || access_of(op, read.slot) != Access::read ||
          is_finite(op, task, read, first_row))
        continue;
      found_.what += " from " + name(read.slot);
      found_.here = found_.here &&
                    resources_.buffer_of(op[read.slot]).memory_class == MemoryClass::parameters;
    }
    return;
  }
}

}  // namespace gptbench
