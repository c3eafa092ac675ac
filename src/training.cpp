#include "training.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>

#include "base/clock.h"
#include "comm/message_totals.h"
#include "measure/job_limit.h"
#include "measure/report.h"

namespace gptbench {
namespace {

// Room made for samples before the first step; a run that a time limit ends may ask for any number.
constexpr int64_t steps_reserved = 4096;

volatile std::sig_atomic_t signal_received = 0;

void note_signal(int number) {
  signal_received = number;
}

struct Deadline {
  double at_s;  // by now_s()
  std::string reason;
};

// The earlier of the deck's limit and the end of the job.
Deadline deadline_of(double time_limit_s, double start_s) {
  Deadline deadline{std::numeric_limits<double>::infinity(), ""};
  if (time_limit_s > 0.0)
    deadline = {start_s + time_limit_s,
                "stopped: another step would pass time_limit_s = " + std::to_string(time_limit_s)};
  const double job_end_s = now_s() + seconds_until_job_end();
  if (job_end_s < deadline.at_s)
    deadline = {job_end_s, "stopped: the job's time limit leaves no room for another step"};
  return deadline;
}

std::string stop_reason(const Deadline& deadline) {
  if (signal_received != 0)
    return "stopped by signal " + std::to_string(static_cast<int>(signal_received)) +
           " after the step in hand";
  return deadline.reason.empty() ? "stopped by another rank" : deadline.reason;
}

// Collective. What the lowest rank that has failed met, as the outcome; false where none has.
bool note_failure(MpiWorld& world, const Engine& engine, Training& training) {
  const bool failed = engine.failure_code() != Exit::ok;
  const int64_t first = world.min(failed ? world.rank() : world.size());
  if (first == world.size()) return false;
  training.outcome = static_cast<Exit>(
      world.max(world.rank() == first ? static_cast<int64_t>(engine.failure_code()) : int64_t{0}));
  const std::vector<std::string> reasons = world.gather(engine.failure());
  if (world.rank() != 0) return true;
  training.reason = reasons[static_cast<size_t>(first)];
  if (training.outcome == Exit::out_of_memory)
    training.reason = "out of memory, met in step " + std::to_string(training.samples.size()) +
                      " by rank " + std::to_string(first) + ": " + training.reason;
  return true;
}

// What to do about a step that ends the run; "" where it does not. A scaled gradient that is not
// finite costs its step alone, as long as the scale can be lowered.
std::string non_finite_reason(const PrecisionConfig& precision, const StepResult& result) {
  const bool finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (finite) return "";
  if (!result.skipped || !std::isfinite(result.loss))
    return "lower optimizer.lr or look at the data";
  if (precision.loss_scale > 0.0)
    return "precision.loss_scale is fixed; use a smaller one, or 0 (dynamic)";
  if (result.next_loss_scale < precision.min_loss_scale)
    return "the loss scale falls below precision.min_loss_scale; lower optimizer.lr";
  return "";
}

}  // namespace

void watch_signals() {
  std::signal(SIGTERM, note_signal);
  std::signal(SIGUSR1, note_signal);
}

Training train(MpiWorld& world, Engine& engine, const Plan& plan,
               const CommunicatorTable& communicators, Sensing& sensing, double start_s,
               const std::function<void()>& after_first_step) {
  const RunConfig& run = plan.config.run;
  const double tokens = static_cast<double>(plan.config.batch.global_batch_size * plan.shape.T);
  Training training;
  training.samples.reserve(static_cast<size_t>(std::min(run.steps, steps_reserved)));
  if (world.rank() == 0) std::fputs(progress_heading().c_str(), stdout);
  reset_message_counts();
  world.barrier();
  const Deadline deadline = deadline_of(run.time_limit_s, start_s);
  double last_step_s = 0.0;
  for (int64_t step = 0; step < run.steps; ++step) {
    if (step == run.warmup_steps) {
      for (Communicator* communicator : communicators.by_axis)
        if (communicator != nullptr) communicator->reset_statistics();
      sensing.begin();
      world.barrier();  // else the ranks that read sensors would be late in the first timed step
    }
    if (step + 1 == plan.config.output.trace_step) world.barrier();  // one origin for all ranks
    // The vote is cast before the step whose end it decides about.
    const double end_of_next_s = now_s() + 2.0 * last_step_s;
    const bool last = step + 1 == run.steps;
    const bool late = !last && end_of_next_s > deadline.at_s;
    const StepResult result = engine.step(step, signal_received != 0 || late);
    training.samples.push_back({result, engine.times()});
    last_step_s = result.time_s;
    if (world.rank() == 0) {
      const double left_s = result.time_s * static_cast<double>(run.steps - step - 1);
      std::fputs(progress_line(step, run.steps, step < run.warmup_steps, result.loss,
                               result.grad_norm, result.time_s, tokens / result.time_s, left_s)
                     .c_str(),
                 stdout);
      if (result.skipped)
        std::fputs(skipped_line(result.loss_scale, result.next_loss_scale).c_str(), stdout);
      std::fflush(stdout);
    }
    if (step == 0) after_first_step();

    if (result.stop && note_failure(world, engine, training)) break;
    const std::string trouble = non_finite_reason(plan.config.precision, result);
    if (!trouble.empty()) {
      training.outcome = Exit::non_finite;
      training.reason = "loss " + std::to_string(result.loss) + ", gradient norm " +
                        std::to_string(result.grad_norm) + " in step " + std::to_string(step + 1) +
                        "; " + trouble;
      break;
    }
    if (result.stop && !last) {
      training.outcome = Exit::timeout;
      training.reason = stop_reason(deadline);
      break;
    }
  }
  sensing.end();
  // A rank that failed behind the votes of the last step.
  if (training.outcome == Exit::ok) note_failure(world, engine, training);
  return training;
}

}  // namespace gptbench
