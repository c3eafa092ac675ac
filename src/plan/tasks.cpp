#include "plan/tasks.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "plan/schedule.h"

namespace gptbench {
namespace {

constexpr size_t num_program_kinds = static_cast<size_t>(ProgramKind::end_step) + 1;

// The variant for the last micro-batch, where there is one.
ProgramKind last_of(ProgramKind kind) {
  return kind == ProgramKind::backward ? ProgramKind::backward_last
         : kind == ProgramKind::weight ? ProgramKind::weight_last
                                       : kind;
}

// Programs by kind and virtual stage of this rank.
class ProgramTable {
 public:
  explicit ProgramTable(const Plan& plan)
      : index_(num_program_kinds * std::max<size_t>(1, plan.chunks.size()), -1) {
    for (size_t i = 0; i < plan.programs.size(); ++i)
      index_[at(plan.programs[i].kind, plan.programs[i].chunk)] = static_cast<int32_t>(i);
  }
  // -1: none.
  int32_t find(ProgramKind kind, int32_t chunk) const { return index_[at(kind, chunk)]; }
  // The program that a micro-batch runs as `kind`.
  int32_t find(ProgramKind kind, int32_t chunk, bool last) const {
    const int32_t variant = last ? find(last_of(kind), chunk) : -1;
    return variant >= 0 ? variant : find(kind, chunk);
  }

 private:
  static size_t at(ProgramKind kind, int32_t chunk) {
    return num_program_kinds * static_cast<size_t>(chunk) + static_cast<size_t>(kind);
  }
  std::vector<int32_t> index_;
};

bool is_of_step(ProgramKind kind) {
  return kind == ProgramKind::begin_step || kind == ProgramKind::end_step;
}

// Slots that the virtual stages of a rank share (plan/slots.h): a micro-batch takes one in its
// forward pass through each of them, which is free again after its backward pass.
class SharedSlots {
 public:
  explicit SharedSlots(size_t chunks) : taken_(chunks) {}

  // The slot of a pass. To be called once for every pass of the rank, in their order.
  int32_t of(const StagePass& pass) {
    if (taken_.size() == 1) return 0;
    std::deque<int32_t>& taken = taken_[static_cast<size_t>(pass.chunk)];
    if (pass.kind == PassKind::forward) {
      if (free_.empty()) free_.push_back(number_++);
      taken.push_back(free_.back());
      free_.pop_back();
      return taken.back();
    }
    const int32_t slot = taken.front();
    taken.pop_front();
    free_.push_back(slot);
    return slot;
  }

 private:
  std::vector<std::deque<int32_t>> taken_;  // [chunk] by its micro-batches, in their order
  std::vector<int32_t> free_;
  int32_t number_ = 0;
};

// A stage asks for the input of a pass while the pass before it runs. An evaluation keeps nothing
// for later passes.
void for_each_task_of(const Plan& plan, bool evaluates,
                      const std::function<void(const Task&)>& visit) {
  const ProgramTable programs(plan);
  SharedSlots shared_slots(plan.chunks.size());
  const auto run = [&](ProgramKind kind, const StagePass& pass, int32_t shared_slot = 0) {
    const bool last = pass.micro_batch + 1 == plan.micro_batches.size();
    const int32_t program = programs.find(kind, pass.chunk, last);
    if (program < 0) return;
    visit({program, pass.micro_batch, shared_slot, plan.micro_batches[pass.micro_batch]});
  };
  const auto receive = [&](const StagePass& pass) {
    if (pass.kind == PassKind::weight) return;
    run(pass.kind == PassKind::forward ? ProgramKind::receive_forward
                                       : ProgramKind::receive_backward,
        pass);
  };
  const auto compute = [&](const StagePass& pass) {
    run(pass.kind == PassKind::forward    ? ProgramKind::forward
        : pass.kind == PassKind::backward ? ProgramKind::backward
                                          : ProgramKind::weight,
        pass, evaluates ? 0 : shared_slots.of(pass));
  };
  visit({programs.find(ProgramKind::begin_step, 0)});
  std::optional<StagePass> before;
  for_each_pass(plan.schedule(), [&](const StagePass& pass) {
    if (evaluates && pass.kind != PassKind::forward) return;
    receive(pass);
    if (before) compute(*before);
    before = pass;
  });
  if (before) compute(*before);
}

}  // namespace

void for_each_task(const Plan& plan, const std::function<void(const Task&)>& visit) {
  for_each_task_of(plan, false, visit);
  visit({ProgramTable(plan).find(ProgramKind::end_step, 0)});
}

void for_each_evaluation_task(const Plan& plan, const std::function<void(const Task&)>& visit) {
  for_each_task_of(plan, true, visit);
}

std::vector<ProgramRuns> program_runs(const Plan& plan) {
  const ProgramTable programs(plan);
  const int64_t T = plan.T_local();
  std::vector<ProgramRuns> runs;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const Program& program = plan.programs[i];
    const int32_t index = static_cast<int32_t>(i);
    if (is_of_step(program.kind)) {
      runs.push_back({index, 0, 1});
      continue;
    }
    const bool is_variant =
        program.kind == ProgramKind::backward_last || program.kind == ProgramKind::weight_last;
    const bool has_variant = programs.find(program.kind, program.chunk, true) != index;
    int64_t first = 0;
    for (const auto& [sequences, number] : plan.micro_batches.runs()) {
      const bool ends = first + number == plan.micro_batches.size();
      const int64_t times = is_variant ? (ends ? 1 : 0) : number - (ends && has_variant ? 1 : 0);
      if (times > 0) runs.push_back({index, sequences * T, times});
      first += number;
    }
  }
  return runs;
}

}  // namespace gptbench
