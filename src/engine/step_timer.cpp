#include "engine/step_timer.h"

#include <string>
#include <vector>

#include "base/clock.h"

namespace gptbench {
namespace {

// Kinds of programs whose times are added up; `receiving` is in no sum.
enum ProgramClass { in_forward, in_backward, in_optimizer, receiving };
constexpr int num_program_classes = 4;
constexpr double StepTimes::*program_sums[] = {&StepTimes::forward_s, &StepTimes::backward_s,
                                               &StepTimes::optimizer_s};

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
  return receiving;
}

// What time is spent on: a region, or messages of an axis and kind.
constexpr int num_subjects = num_regions + num_axes * num_op_kinds;

// "backward linear", "forward all_reduce data"; by label.
std::vector<std::string> names_of_labels() {
  std::vector<std::string> names;
  for (const char* program : {"forward ", "backward ", "step ", "receive "}) {
    for (int region = 0; region < num_regions; ++region)
      names.push_back(std::string(program) + name_of(static_cast<Region>(region)));
    for (int axis = 0; axis < num_axes; ++axis)
      for (int kind = 0; kind < num_op_kinds; ++kind)
        names.push_back(std::string(program) + spec_of(static_cast<OpKind>(kind)).name + " " +
                        name_of(static_cast<Axis>(axis)));
  }
  return names;
}

int subject_of(const Op& op) {
  if (!is_message(op.kind))
    return static_cast<int>(is_transfer(op.kind) ? Region::offload : op.region);
  const OpKind kind = op.kind == OpKind::receive ? OpKind::send : op.kind;
  return num_regions + static_cast<int>(op.axis) * num_op_kinds + static_cast<int>(kind);
}

void add(double seconds, int subject, StepTimes& times, ExposedTimes* exposed_s) {
  if (subject < num_regions) {
    times.region_s[static_cast<size_t>(subject)] += seconds;
    return;
  }
  times.region_s[static_cast<size_t>(Region::communication)] += seconds;
  const size_t axis = static_cast<size_t>((subject - num_regions) / num_op_kinds);
  const size_t kind = static_cast<size_t>((subject - num_regions) % num_op_kinds);
  if (exposed_s != nullptr) (*exposed_s)[axis][kind] += seconds;
}

}  // namespace

StepTimer::StepTimer(Device& device) : stopwatch_(device.make_stopwatch()) {
  if (stopwatch_ != nullptr) stopwatch_->set_names(names_of_labels());
}

void StepTimer::begin_program(ProgramKind kind) {
  program_ = kind;
  program_start_s_ = now_s();
}

void StepTimer::end_program() {
  const ProgramClass in = class_of(program_);
  if (in != receiving) times_.*program_sums[in] += now_s() - program_start_s_;
}

void StepTimer::book(const Op& op, double seconds) {
  add(seconds, subject_of(op), times_, stopwatch_ == nullptr ? &exposed_s_ : nullptr);
}

// A label says in which class of programs the time was spent, and on what.
void StepTimer::mark(Queue& compute, const Op& op) {
  if (stopwatch_ != nullptr)
    stopwatch_->mark(compute, class_of(program_) * num_subjects + subject_of(op));
}

void StepTimer::collect_marks() {
  if (stopwatch_ == nullptr) return;
  std::vector<double> seconds(static_cast<size_t>(num_program_classes * num_subjects));
  stopwatch_->collect(seconds);
  times_ = {};
  for (int in = 0; in < num_program_classes; ++in)
    for (int subject = 0; subject < num_subjects; ++subject) {
      const double spent_s = seconds[static_cast<size_t>(in * num_subjects + subject)];
      if (in != receiving) times_.*program_sums[in] += spent_s;
      add(spent_s, subject, times_, &exposed_s_);
    }
}

}  // namespace gptbench
