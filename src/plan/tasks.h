// The tasks of a step: generated from the plan, never stored, since a step may have billions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

// Calls visit(task) for each task of a step in the order of issue.
void for_each_task(const Plan& plan, const std::function<void(const Task&)>& visit);

// The same for an evaluation, the forward passes of a step: its beginning clears the sum of losses,
// nothing follows the last pass.
void for_each_evaluation_task(const Plan& plan, const std::function<void(const Task&)>& visit);

// A program of which `times` runs in a step are equal but for the micro-batch: of `rows` rows on
// this rank.
struct ProgramRuns {
  int32_t program = 0;
  int64_t rows = 0, times = 0;
};
std::vector<ProgramRuns> program_runs(const Plan& plan);

// Calls visit(op_index, rows, times): in a step the operation is issued `times` times with `rows`
// rows of the micro-batch before it (rows_of(op, rows)). Grouped, in no order of issue: the number
// of calls does not depend on the batch.
template <class Visit>
void for_each_operation(const Plan& plan, Visit visit) {
  for (const ProgramRuns& runs : program_runs(plan)) {
    const Program& program = plan.programs[static_cast<size_t>(runs.program)];
    for (int32_t i = program.first; i < program.last; ++i) {
      if (!program.loops(i)) {
        visit(i, runs.rows, runs.times);
        continue;
      }
      const int64_t full = std::min(program.loop_times, runs.rows / program.loop_rows);
      const int64_t rest = program.loop_times - full;  // what is left of the rows, then none
      if (full > 0) visit(i, program.loop_rows, full * runs.times);
      if (rest > 0) visit(i, runs.rows - full * program.loop_rows, runs.times);
      if (rest > 1) visit(i, int64_t{0}, (rest - 1) * runs.times);
    }
  }
}

}  // namespace gptbench
