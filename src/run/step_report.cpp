#include "run/step_report.h"

#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "record/flops.h"
#include "run/assemble_record.h"
#include "run/signals.h"

namespace gptbench {

StepReport::StepReport(const Session& session, const Record& planned, const Plan& plan,
                       int64_t first_step)
    : session_(session),
      plan_(plan),
      progress_(session.console, Progress::length_of(plan.config, first_step, session.start_s),
                plan.config.output.log_every, static_cast<double>(planned.summary.tokens_per_step),
                model_flops(planned.summary, planned.summary.flops.convention)) {}

void StepReport::begin(const Record& planned, const RunParts& parts) {
  if (session_.world.rank() == 0)
    session_.journal.begin(plan_.config.output.directory, run_record(planned, plan_, parts));
}

void StepReport::write_line() {
  session_.journal.add(latest_);
  if (has_warned_ || signal_pending()) return;
  const std::string trouble = session_.journal.trouble();
  has_warned_ = !trouble.empty();
  if (has_warned_) session_.console.say("Warning: " + trouble + "\n");
}

void StepReport::add(int64_t step, const StepResult& result) {
  if (session_.world.rank() != 0) return;
  const double tokens = static_cast<double>(plan_.config.batch.global_batch_size * plan_.shape.T);
  latest_ = {step + 1, result.loss, result.grad_norm, result.time_s, tokens / result.time_s};
  latest_.loss_scale = result.loss_scale;
  latest_.skipped = result.skipped;
  write_line();
  // A launcher that ends the run may have stopped reading what is printed.
  if (!signal_pending()) progress_.add(step, result, now_s());
}

void StepReport::evaluated(const Evaluation& evaluation) {
  if (session_.world.rank() != 0) return;
  latest_.held_out_loss = evaluation.loss;
  write_line();
  const double target = plan_.config.convergence.target_loss;
  const bool ends = target > 0.0 && evaluation.loss <= target;
  if (!signal_pending()) progress_.evaluated(evaluation.steps, evaluation.loss, ends, now_s());
}

}  // namespace gptbench
