// Report of each step on rank 0: a line on the console, and one in the journal.
#pragma once

#include "plan/plan.h"
#include "run/attempt.h"
#include "run/progress.h"
#include "run/record_parts.h"
#include "run/training.h"

namespace gptbench {

class StepReport {
 public:
  // planned: of the attempt. first_step: from 0; of this run.
  StepReport(const Session& session, const Record& planned, const Plan& plan, int64_t first_step);

  // Starts the journal with what is known before the first step. Throws Error(Exit::io).
  void begin(const Record& planned, const RunParts& parts);
  // After each step, in order.
  void add(int64_t step, const StepResult& result);
  // After the step that was added last.
  void evaluated(const Evaluation& evaluation);

 private:
  void write_line();  // of the latest step; warns once where lines are missing

  const Session& session_;
  const Plan& plan_;
  Progress progress_;
  JournalStep latest_;
  bool has_warned_ = false;
};

}  // namespace gptbench
