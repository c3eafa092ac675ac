#include "engine/step_timer.h"

#include <string>
#include <vector>

#include "base/clock.h"

namespace gptbench {
namespace {

// Kinds of programs whose times are added up.
enum ProgramClass { in_forward, in_backward, in_optimizer };
constexpr int num_program_classes = 3;
constexpr double StepTimes::*program_sums[] = {&StepTimes::forward_s, &StepTimes::backward_s,
                                               &StepTimes::optimizer_s};

ProgramClass class_of(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::receive_forward:
    case ProgramKind::forward:
      return in_forward;
    case ProgramKind::receive_backward:
    case ProgramKind::backward:
    case ProgramKind::backward_last:
    case ProgramKind::weight:
    case ProgramKind::weight_last:
      return in_backward;
    case ProgramKind::begin_step:
    case ProgramKind::end_step:
      break;
  }
  return in_optimizer;
}

// Subjects that time is spent on: a region, or messages of an axis and kind; or regions that are
// told apart by the first task of the program.
constexpr int undivided = num_regions + num_axes * num_op_kinds;
constexpr int num_subjects = undivided + 1;

// A label says in which program the time was spent, and on what.
int label_of(int32_t program, int subject) {
  return program * num_subjects + subject;
}

// "backward linear", "forward all_reduce data"; by label.
std::vector<std::string> names_of_labels(const std::vector<Program>& programs) {
  constexpr const char* classes[num_program_classes] = {"forward ", "backward ", "step "};
  std::vector<std::string> names;
  for (const Program& program : programs) {
    const std::string in = classes[class_of(program.kind)];
    for (int region = 0; region < num_regions; ++region)
      names.push_back(in + name_of(static_cast<Region>(region)));
    for (int axis = 0; axis < num_axes; ++axis)
      for (int kind = 0; kind < num_op_kinds; ++kind)
        names.push_back(in + spec_of(static_cast<OpKind>(kind)).name + " " +
                        name_of(static_cast<Axis>(axis)));
    names.push_back(in);
  }
  return names;
}

// Waits for messages and transfers depend on what else is under way.
bool differs_by_task(int subject) {
  return subject >= num_regions || subject == static_cast<int>(Region::offload);
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

StepTimer::StepTimer(const std::vector<Program>& programs, Device& device)
    : programs_(programs), stopwatch_(device.make_stopwatch()) {
  if (stopwatch_ != nullptr) stopwatch_->set_names(names_of_labels(programs));
}

void StepTimer::begin_recording() {
  recording_ = true;
  marked_.assign(programs_.size(), false);
}

void StepTimer::begin_program(int32_t program) {
  program_ = program;
  const size_t at = static_cast<size_t>(program);
  undivided_ = recording_ && marked_[at];
  if (recording_) marked_[at] = true;
  program_start_s_ = now_s();
}

void StepTimer::end_program() {
  const ProgramClass in = class_of(programs_[static_cast<size_t>(program_)].kind);
  times_.*program_sums[in] += now_s() - program_start_s_;
}

void StepTimer::book(const Op& op, double seconds) {
  add(seconds, subject_of(op), times_, stopwatch_ == nullptr ? &exposed_s_ : nullptr);
}

void StepTimer::book_after_programs(const Op& op, double seconds) {
  book(op, seconds);
  times_.optimizer_s += seconds;
}

void StepTimer::mark(Queue& compute, const Op& op) {
  if (stopwatch_ == nullptr) return;
  const int subject = subject_of(op);
  stopwatch_->mark(
      compute, label_of(program_, undivided_ && !differs_by_task(subject) ? undivided : subject));
}

void StepTimer::collect_marks() {
  if (stopwatch_ == nullptr) return;
  std::vector<double> seconds(programs_.size() * num_subjects);
  stopwatch_->collect(seconds);
  times_ = {};
  for (size_t p = 0; p < programs_.size(); ++p) {
    const double* const of_program = &seconds[p * num_subjects];
    double divided_s = 0.0;
    for (int subject = 0; subject < undivided; ++subject)
      if (!differs_by_task(subject)) divided_s += of_program[subject];
    const double factor = divided_s > 0.0 ? 1.0 + of_program[undivided] / divided_s : 1.0;
    const ProgramClass in = class_of(programs_[p].kind);
    for (int subject = 0; subject < undivided; ++subject) {
      const double spent_s = of_program[subject] * (differs_by_task(subject) ? 1.0 : factor);
      times_.*program_sums[in] += spent_s;
      add(spent_s, subject, times_, &exposed_s_);
    }
  }
}

}  // namespace gptbench
