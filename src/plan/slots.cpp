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

// The passes that use a buffer. Of several virtual stages the first one's: it is the first to go
// forward and the last to go back.
struct Use {
  int32_t first_chunk = -1, last_chunk = -1;  // -1: none
  PassKind first = PassKind::weight, last = PassKind::forward;
  bool arrives = false, leaves = false;  // by messages between stages

  // What a micro-batch forms in its forward pass through a virtual stage for its backward pass.
  bool is_shareable() const {
    return first_chunk >= 0 && first_chunk == last_chunk && !arrives && !leaves &&
           first == PassKind::forward && last == PassKind::backward;
  }
};

std::vector<Use> uses_of(const Plan& plan) {
  std::vector<Use> uses(plan.buffers.size());
  for (const Program& program : plan.programs) {
    const std::optional<PassKind> pass = pass_of(program.kind);
    for (int32_t i = program.first; pass && i < program.last; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      for (const Operands::Named& each : op.operands) {
        Use& use = uses[static_cast<size_t>(each.operand.buffer)];
        if (use.first_chunk < 0) use.first_chunk = program.chunk;
        use.last_chunk = program.chunk;
        use.first = std::min(use.first, *pass);
        use.last = std::max(use.last, *pass);
        if (op.axis != Axis::pipeline) continue;
        (op.kind == OpKind::send ? use.leaves : use.arrives) = true;
      }
    }
  }
  return uses;
}

class Slots {
 public:
  explicit Slots(Plan& plan) : plan_(plan), schedule_(plan.schedule()), uses_(uses_of(plan)) {}

  void assign() {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Use& use = uses_[b];
      if (plan_.buffers[b].lifetime != Lifetime::micro_batch || use.first_chunk < 0) continue;
      const int64_t most =
          most_in_chunk(use.first_chunk, {use.first, use.last, use.arrives ? 1 : 0});
      plan_.buffers[b].slots = std::min(most + (use.leaves ? 1 : 0), schedule_.m);
    }
    if (plan_.chunks.size() > 1) share();
  }

 private:
  int64_t most_in_chunk(int32_t chunk, const PassSpan& span) {
    int64_t& most = most_[{chunk, span.first, span.last, span.ahead}];
    if (most > 0) return most;
    std::vector<int64_t> weight(plan_.chunks.size(), 0);
    weight[static_cast<size_t>(chunk)] = 1;
    return most = most_within(schedule_, span, weight);
  }

  // The first arrays of one size of all virtual stages, the second ones, ...
  void share() {
    using Size = std::tuple<MemoryClass, DType, int64_t>;
    std::map<std::pair<Size, int64_t>, std::vector<int>> alike;
    std::map<std::pair<Size, int32_t>, int64_t> number;  // of a chunk
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (buffer.lifetime != Lifetime::micro_batch || !uses_[b].is_shareable()) continue;
      const Size size{buffer.memory_class, buffer.dtype, buffer.elements};
      alike[{size, number[{size, uses_[b].first_chunk}]++}].push_back(static_cast<int>(b));
    }
    const int64_t together =
        most_within(schedule_, {}, std::vector<int64_t>(plan_.chunks.size(), 1));
    for (const auto& [size, members] : alike) {
      int64_t apart = 0;
      for (const int b : members) apart += plan_.buffers[static_cast<size_t>(b)].slots;
      if (apart <= together) continue;
      for (const int b : members) {
        plan_.buffers[static_cast<size_t>(b)].slots = together;
        plan_.buffers[static_cast<size_t>(b)].shares = members.front();
      }
    }
  }

  Plan& plan_;
  const StageSchedule schedule_;
  const std::vector<Use> uses_;  // [buffer]
  std::map<std::tuple<int32_t, PassKind, PassKind, int64_t>, int64_t> most_;
};

}  // namespace

void assign_slots(Plan& plan) {
  Slots(plan).assign();
}

}  // namespace gptbench
