#include "plan/slots.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace gptbench {
namespace {

std::optional<PassKind> pass_of(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::receive_forward:
    case ProgramKind::forward:
      return PassKind::forward;
    case ProgramKind::receive_backward:
    case ProgramKind::backward:
    case ProgramKind::backward_last:
      return PassKind::backward;
    case ProgramKind::weight:
    case ProgramKind::weight_last:
      return PassKind::weight;
    case ProgramKind::begin_step:
    case ProgramKind::end_step:
      break;
  }
  return std::nullopt;
}

struct Passes {
  int32_t first_chunk = -1, last_chunk = -1;  // -1: none
  PassKind first = PassKind::weight, last = PassKind::forward;
  bool arrives = false, leaves = false;  // by messages between stages

  // What a micro-batch forms in its forward pass through a virtual stage for its backward pass.
  bool are_shareable() const {
    return first_chunk == last_chunk && !arrives && !leaves && first == PassKind::forward &&
           last == PassKind::backward;
  }
};

}  // namespace

std::vector<std::optional<SlotUse>> slot_uses(const Plan& plan) {
  std::vector<Passes> passes(plan.buffers.size());
  for (const Program& program : plan.programs) {
    const std::optional<PassKind> pass = pass_of(program.kind);
    for (int32_t i = program.first; pass && i < program.last; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      for (const Operands::Named& each : op.operands) {
        Passes& of = passes[static_cast<size_t>(each.operand.buffer)];
        if (of.first_chunk < 0) of.first_chunk = program.chunk;
        of.last_chunk = program.chunk;
        of.first = std::min(of.first, *pass);
        of.last = std::max(of.last, *pass);
        if (op.axis != Axis::pipeline) continue;
        (op.kind == OpKind::send ? of.leaves : of.arrives) = true;
      }
    }
  }
  std::vector<std::optional<SlotUse>> uses(plan.buffers.size());
  for (size_t b = 0; b < uses.size(); ++b) {
    const Passes& of = passes[b];
    if (plan.buffers[b].lifetime == Lifetime::micro_batch && of.first_chunk >= 0)
      uses[b] = {
          of.first_chunk, {of.first, of.last, of.arrives ? 1 : 0}, of.leaves, of.are_shareable()};
  }
  return uses;
}

int64_t StageSlots::of(const SlotUse& use, int32_t chunk) {
  std::vector<int64_t>& most = most_[{use.span.first, use.span.last, use.span.ahead}];
  if (most.empty()) most = most_within_each(schedule_, use.span);
  return std::min(most[static_cast<size_t>(chunk)] + (use.leaves ? 1 : 0), schedule_.m);
}

int64_t StageSlots::together() {
  if (together_ == 0)
    together_ =
        most_within(schedule_, {}, std::vector<int64_t>(static_cast<size_t>(schedule_.v), 1));
  return together_;
}

int64_t StageSlots::kept_layers(const std::vector<int64_t>& layers) {
  if (kept_layers_ == 0) kept_layers_ = most_within(schedule_, {}, layers);
  return kept_layers_;
}

void assign_slots(Plan& plan) {
  StageSlots slots(plan.schedule());
  const std::vector<std::optional<SlotUse>> uses = slot_uses(plan);
  for (size_t b = 0; b < uses.size(); ++b)
    if (uses[b]) plan.buffers[b].slots = slots.of(*uses[b], uses[b]->chunk);
  if (plan.chunks.size() == 1) return;
  // The first arrays of one size of all virtual stages, the second ones, ...
  using Size = std::tuple<MemoryClass, DType, int64_t>;
  std::map<std::pair<Size, int64_t>, std::vector<int>> alike;
  std::map<std::pair<Size, int32_t>, int64_t> number;  // of a chunk
  for (size_t b = 0; b < uses.size(); ++b) {
    if (!uses[b] || !uses[b]->is_shareable) continue;
    const Buffer& buffer = plan.buffers[b];
    const Size size{buffer.memory_class, buffer.dtype, buffer.elements};
    alike[{size, number[{size, uses[b]->chunk}]++}].push_back(static_cast<int>(b));
  }
  for (const auto& [size, members] : alike) {
    int64_t apart = 0;
    for (const int b : members) apart += plan.buffers[static_cast<size_t>(b)].slots;
    if (apart <= slots.together()) continue;
    for (const int b : members) {
      plan.buffers[static_cast<size_t>(b)].slots = slots.together();
      plan.buffers[static_cast<size_t>(b)].shares = members.front();
    }
  }
}

}  // namespace gptbench
