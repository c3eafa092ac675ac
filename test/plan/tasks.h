// The tasks and operations of a step one by one, for tests.
#pragma once

#include <vector>

#include "plan/tasks.h"

namespace gptbench {

inline std::vector<Task> tasks_of(const Plan& plan, decltype(for_each_task)& list = for_each_task) {
  std::vector<Task> tasks;
  list(plan, [&](const Task& task) { tasks.push_back(task); });
  return tasks;
}

// Calls visit(task, op_index, first_row) for each operation of a step in the order of issue.
template <class Visit>
void for_each_issued(const Plan& plan, Visit visit) {
  for_each_task(plan, [&](const Task& task) {
    for_each_op(plan.programs[static_cast<size_t>(task.program)],
                [&](int32_t i, int64_t first_row) { visit(task, i, first_row); });
  });
}

}  // namespace gptbench
