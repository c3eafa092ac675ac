// Issues the operations of a step: each after what it waits for, messages driven between them.
#pragma once

#include <array>

#include "engine/non_finite.h"
#include "engine/resources.h"
#include "engine/step_inputs.h"
#include "engine/step_timer.h"
#include "engine/trace.h"
#include "plan/tasks.h"

namespace gptbench {

class OperationIssuer {
 public:
  // The arguments must outlive it.
  OperationIssuer(Resources& resources, StepInputs& inputs, StepTimer& timer)
      : resources_(resources), inputs_(inputs), timer_(timer) {}

  // What watches the operations that are issued from here on; null: nothing.
  void set_trace(Trace* trace) { trace_ = trace; }
  void set_search(NonFiniteSearch* search) { search_ = search; }

  // All operations of the tasks that `tasks` visits. Where memory runs out, this rank fails
  // (StepInputs::fail) and goes on.
  void issue(decltype(for_each_task)& tasks = for_each_task);
  // Those operations of a step that bring in inputs.
  void issue_inputs();
  // Waits until everything issued has ended.
  void synchronize();

 private:
  void issue(const Op& op, const Task& task, int64_t first_row);
  void call(const Op& op, const Task& task, int64_t first_row);
  void wait_for(const Op& op, int32_t micro_batch);
  void drive_messages();

  Resources& resources_;
  StepInputs& inputs_;
  StepTimer& timer_;
  Trace* trace_ = nullptr;
  NonFiniteSearch* search_ = nullptr;
  std::array<const Op*, num_queues> latest_{};  // message or transfer of each queue
};

}  // namespace gptbench
