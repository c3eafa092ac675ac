// Times of a device that works behind the host's back: marks on its compute queue take the place of
// the host's clock.
#include "engine/engine.h"

namespace gptbench {
namespace {

// A label says in which kind of program the time was spent, and on what: a region, or waiting for
// messages of an axis and kind.
constexpr int num_subjects = num_regions + num_axes * num_op_kinds;
enum ProgramClass { in_forward, in_backward, in_optimizer, in_receive };
constexpr int num_program_classes = 4;

ProgramClass class_of(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::forward:
      return in_forward;
    case ProgramKind::backward:
    case ProgramKind::backward_last:
    case ProgramKind::weight:
    case ProgramKind::weight_last:
      return in_backward;
    case ProgramKind::begin_step:
    case ProgramKind::end_step:
      return in_optimizer;
    case ProgramKind::receive_forward:
    case ProgramKind::receive_backward:
      break;
  }
  return in_receive;
}

int label_of(ProgramKind kind, int subject) {
  return class_of(kind) * num_subjects + subject;
}

}  // namespace

void Engine::mark(const Op& op) {
  if (stopwatch_ == nullptr) return;
  stopwatch_->mark(queue(QueueId::compute), label_of(program_, static_cast<int>(op.region)));
}

void Engine::mark_wait_for(const Op& message) {
  if (stopwatch_ == nullptr) return;
  int subject = static_cast<int>(Region::offload);
  if (!is_transfer(message.kind)) {
    const OpKind kind = message.kind == OpKind::receive ? OpKind::send : message.kind;
    subject = num_regions + static_cast<int>(message.axis) * num_op_kinds + static_cast<int>(kind);
  }
  stopwatch_->mark(queue(QueueId::compute), label_of(program_, subject));
}

// In place of what the host's clock told, which is how long it took to ask for the work.
void Engine::collect_marks() {
  std::vector<double> seconds(static_cast<size_t>(num_program_classes * num_subjects));
  stopwatch_->collect(seconds);
  times_ = {};
  for (int c = 0; c < num_program_classes; ++c)
    for (int subject = 0; subject < num_subjects; ++subject) {
      const double spent_s = seconds[static_cast<size_t>(c * num_subjects + subject)];
      if (c == in_forward) times_.forward_s += spent_s;
      if (c == in_backward) times_.backward_s += spent_s;
      if (c == in_optimizer) times_.optimizer_s += spent_s;
      if (subject < num_regions) {
        times_.region_s[static_cast<size_t>(subject)] += spent_s;
        continue;
      }
      const size_t axis = static_cast<size_t>((subject - num_regions) / num_op_kinds);
      const size_t kind = static_cast<size_t>((subject - num_regions) % num_op_kinds);
      times_.region_s[static_cast<size_t>(Region::communication)] += spent_s;
      exposed_s_[axis][kind] += spent_s;
    }
}

}  // namespace gptbench
