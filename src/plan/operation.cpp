#include "plan/operation.h"

#include <algorithm>

#include "base/error.h"

namespace gptbench {

Operands::Operands(std::initializer_list<Named> operands) {
  operands_.reserve(operands.size());
  for (const Named& each : operands) set(each.slot, each.operand);
}

const Operand& Operands::operator[](Slot slot) const {
  static const Operand absent;
  for (const Named& each : operands_)
    if (each.slot == slot) return each.operand;
  return absent;
}

void Operands::set(Slot slot, const Operand& operand) {
  const auto found = std::find_if(operands_.begin(), operands_.end(),
                                  [slot](const Named& each) { return each.slot == slot; });
  if (operand.buffer < 0) {
    if (found != operands_.end()) operands_.erase(found);
  } else if (found != operands_.end()) {
    found->operand = operand;
  } else {
    operands_.push_back({slot, operand});
  }
}

Access access_of(const Op& op, Slot slot) {
  const SlotSpec* const spec = spec_of(op.kind).find(slot);
  GPTBENCH_CHECK(spec != nullptr, "an operand of the kind");
  if (spec->access != Access::write_or_accumulate) return spec->access;
  bool accumulates = false;
  if (op.kind == OpKind::convert)
    accumulates = op.as<ConvertSize>().accumulate;
  else if (op.kind == OpKind::linear_backward_weight)
    accumulates = !assigns_gradient(op, 1);
  else
    accumulates = op.as<AttentionSize>().accumulate;
  return accumulates ? Access::accumulate : Access::write;
}

bool assigns_gradient(const Op& op, int64_t micro_batch) {
  const GradientSum sum = op.as<GemmSize>().sum;
  return op.row_begin == 0 && (sum == GradientSum::begins_micro_batch ||
                               (sum == GradientSum::begins_step && micro_batch == 0));
}

std::string departure_from_spec(const Op& op) {
  const OpSpec& spec = spec_of(op.kind);
  const auto says = [&](const char* slot, const char* what) {
    return std::string(spec.name) + ": " + slot + " " + what;
  };
  if (op.size.index() != static_cast<size_t>(spec.sizes)) return says("sizes", "of another group");
  for (const Operands::Named& each : op.operands)
    if (spec.find(each.slot) == nullptr) return says(name_of(each.slot), "is no operand of it");
  if (op.kind == OpKind::gelu_backward && op.has(Slot::column_sums) && !op.has(Slot::fp8_scale))
    return says("column_sums", "is of fp8 copies");
  for (const SlotSpec& each : spec)
    if (!each.optional && !op.has(each.slot)) return says(name_of(each.slot), "is missing");
  return "";
}

Op at_row(Op op, int64_t first_row) {
  op.row_begin += first_row;
  for (Operands::Named& each : op.operands) each.operand = at_row(each.operand, first_row);
  return op;
}

const char* name_of(QueueId queue) {
  static const char* const names[num_queues] = {
      "compute",      "tensor",          "send_context",  "receive_context",  "data",
      "send_forward", "receive_forward", "send_backward", "receive_backward", "copy",
      "host_kernels"};
  return names[static_cast<int>(queue)];
}

const char* name_of(ProgramKind kind) {
  static const char* const names[] = {"begin_step", "receive_forward", "receive_backward",
                                      "forward",    "backward",        "backward_last",
                                      "weight",     "weight_last",     "end_step"};
  return names[static_cast<int>(kind)];
}

}  // namespace gptbench
