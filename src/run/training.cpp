#include "run/training.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/text.h"
#include "comm/agree.h"
#include "comm/message_totals.h"
#include "measure/job_limit.h"
#include "run/numbers.h"
#include "run/signals.h"

namespace gptbench {
namespace {

struct Deadline {
  double at_s;  // by now_s()
  std::string reason;
};

// The earlier of the deck's limit and the end of the job.
Deadline deadline_of(double time_limit_s, double start_s) {
  Deadline deadline{std::numeric_limits<double>::infinity(), ""};
  if (time_limit_s > 0.0)
    deadline = {start_s + time_limit_s,
                printed("stopped: another step would pass time_limit_s = %g", time_limit_s)};
  const double job_end_s = now_s() + seconds_until_job_end();
  if (job_end_s < deadline.at_s) deadline = {job_end_s, job_end_reason};
  return deadline;
}

// What a rank asks for after a step; the last of these that some rank asks for is done.
enum class AfterStep : int64_t { go_on, stop, fail };

// Collective, the same on all ranks; one exchange per step. A signal of any rank ends the run
// behind the step in which it came, which a vote cast with that step could not.
AfterStep agree_after_step(MpiWorld& world, bool trouble) {
  const AfterStep mine = trouble            ? AfterStep::fail
                         : signal_pending() ? AfterStep::stop
                                            : AfterStep::go_on;
  return static_cast<AfterStep>(world.max(static_cast<int64_t>(mine)));
}

// Collective. Why some rank asked to stop: a signal, a deadline that is near, or else the end of
// run.duration_s, which leaves the outcome as it is.
void note_stop(MpiWorld& world, const Deadline& deadline, bool late, Training& training) {
  const int64_t signal = world.max(static_cast<int64_t>(received_signal()));
  if (signal == 0 && world.all(!late)) return;
  training.outcome = Exit::timeout;
  training.signalled = signal != 0;
  training.reason = deadline.reason.empty() ? "stopped by another rank" : deadline.reason;
  if (training.signalled) training.reason = stopped_by(signal) + " after the step in hand";
}

// Collective. Sets the outcome from the lowest rank that failed; false where none did.
bool note_failure(MpiWorld& world, const Engine& engine, Training& training) {
  const Failure& failure = engine.failure();
  const bool failed = failure.code() != Exit::ok;
  const int64_t first = world.min(failed ? world.rank() : world.size());
  if (first == world.size()) return false;
  training.outcome = static_cast<Exit>(
      world.max(world.rank() == first ? static_cast<int64_t>(failure.code()) : int64_t{0}));
  const std::vector<std::string> reasons = world.gather(failure.reason());
  if (world.rank() != 0) return true;
  training.reason = reasons[static_cast<size_t>(first)];
  if (training.outcome == Exit::out_of_memory)
    training.reason = "out of memory, met in step " +
                      std::to_string(training.first_step + training.steps) + " by rank " +
                      std::to_string(first) + ": " + training.reason;
  return true;
}

// Why this step ends the run, with advice; "" where it does not. A scaled gradient that is not
// finite only skips its step, as long as the scale can be lowered.
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

// C libraries print the sign of a NaN, or not.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : printed("%.6g", value);
}

// Collective, the same on all ranks: the numbers of the first rank that has a reason to end, and
// that reason. `reason` is this rank's: a fault of one rank's memory is not seen by the others,
// which have none.
std::string trouble_of(MpiWorld& world, int64_t step, const StepResult& result,
                       const std::string& reason) {
  const std::string mine = "loss " + number_text(result.loss) + ", gradient norm " +
                           number_text(result.grad_norm) + " in step " + std::to_string(step + 1) +
                           "; " + reason;
  return first_text(world, reason.empty() ? reason : mine);
}

// Collective. Calls `action`, which writes checkpoints; one that cannot be written ends the run.
template <class Action>
void try_to_save(Training& training, const Action& action) {
  try {
    action();
  } catch (const AgreedError& error) {
    note_unwritten(error, training);
  }
}

// The statistics of all communicators, less those in `earlier`.
MessageSums message_sums(const CommunicatorTable& communicators, const MessageSums& earlier = {}) {
  MessageSums sums{};
  for (size_t axis = 0; axis < sums.size(); ++axis) {
    const Communicator* communicator = communicators.by_axis[axis];
    if (communicator == nullptr) continue;
    for (size_t kind = 0; kind < sums[axis].size(); ++kind)
      sums[axis][kind] =
          difference(communicator->statistics(static_cast<OpKind>(kind)), earlier[axis][kind]);
  }
  return sums;
}

// Collective. Appends the held-out loss after `steps` steps; whether it is at most the target.
bool evaluate(MpiWorld& world, Engine& engine, const Plan& plan,
              const CommunicatorTable& communicators, int64_t steps, Training& training) {
  const double start_s = now_s();
  const MessageSums before = message_sums(communicators, training.evaluation_messages);
  training.evaluations.push_back({steps, held_out_loss(world, engine)});
  training.evaluation_messages = message_sums(communicators, before);
  training.evaluation_s += now_s() - start_s;
  return reaches_target(world, plan.config.convergence, training.evaluations.back().loss);
}

// Collective. Discards what was measured during the warm-up; returns when the timed steps begin.
double begin_timed_steps(MpiWorld& world, Engine& engine, const CommunicatorTable& communicators,
                         Sensing& sensing, Training& training) {
  for (Communicator* communicator : communicators.by_axis)
    if (communicator != nullptr) communicator->reset_statistics();
  engine.timer().reset_exposed();
  training.evaluation_messages = {};
  sensing.begin();
  world.barrier();  // else the ranks that read sensors would be late in the first timed step
  return now_s();
}

// Whether the run is to end with an error.
bool has_failed(const Training& training) {
  return training.outcome != Exit::ok && training.outcome != Exit::timeout;
}

}  // namespace

bool is_too_late(double end_s, const TimeAhead& ahead, double deadline_s) {
  return end_s + ahead.step_s + ahead.checkpoint_s + ahead.evaluation_s > deadline_s;
}

double held_out_loss(MpiWorld& world, Engine& engine) {
  const Config& config = engine.resources().plan.config;
  const int64_t batches = config.convergence.evaluate_batches;
  std::vector<double> loss = {0.0};
  for (int64_t batch = 0; batch < batches; ++batch)
    loss[0] += engine.evaluate(held_out_begin + batch * config.batch.global_batch_size);
  world.sum_on_first(loss);
  return loss[0] / static_cast<double>(batches);
}

bool reaches_target(MpiWorld& world, const ConvergenceConfig& convergence, double loss) {
  const bool reached = loss <= convergence.target_loss;
  return world.all(world.rank() != 0 || reached) && convergence.target_loss > 0.0;
}

bool weights_are_sound(MpiWorld& world, Engine& engine, Training& training) {
  const int64_t steps = training.first_step + training.steps;
  if (training.checked_steps == steps) return !has_failed(training);
  const WeightCheck check = check_weights(world, engine);
  training.checked_steps = steps;
  training.replicas_identical = check.replicas;
  if (has_failed(training) || (check.finite && check.agree)) return !has_failed(training);
  training.outcome = check.finite ? Exit::invalid : Exit::non_finite;
  training.reason = check.finite ? "replicas differ after step " + std::to_string(steps) + ": " +
                                       check.differences
                                 : "weights are not finite after step " + std::to_string(steps) +
                                       "; lower optimizer.lr or look at the data" +
                                       place_of_non_finite_weights(world, engine);
  return false;
}

void note_unwritten(const AgreedError& error, Training& training) {
  const bool failed = has_failed(training);
  training.reason = (failed ? training.reason + "; " : "") + error.what();
  if (!failed) training.outcome = error.code();
}

Training train(MpiWorld& world, Engine& engine, const Plan& plan,
               const CommunicatorTable& communicators, Sensing& sensing, Checkpoints& checkpoints,
               int64_t first_step, double start_s, const TrainingEvents& events) {
  const RunConfig& run = plan.config.run;
  const bool by_time = run.limits.duration_s > 0.0;
  const int64_t first_timed = first_step + run.warmup_steps;
  Training training;
  training.first_step = first_step;
  reset_message_counts();
  world.barrier();
  const Deadline deadline = deadline_of(run.limits.time_limit_s, start_s);
  training.deadline_s = deadline.at_s;
  const int64_t evaluate_every = plan.config.convergence.evaluate_every;
  double timed_begin_s = 0.0;
  TimeAhead ahead;
  for (int64_t step = first_step; by_time || step < run.steps; ++step) {
    if (step == first_timed)
      timed_begin_s = begin_timed_steps(world, engine, communicators, sensing, training);
    if (step + 1 == plan.config.output.trace_step) world.barrier();  // one origin for all ranks
    // Deadlines are foreseen: this vote is cast before the step whose end it decides about.
    const double end_s = now_s() + ahead.step_s;
    const bool last = !by_time && step + 1 == run.steps;
    ahead.checkpoint_s = checkpoints.longest_s();
    const bool late = !last && is_too_late(end_s, ahead, deadline.at_s);
    const bool done =
        by_time && step >= first_timed && end_s >= timed_begin_s + run.limits.duration_s;
    const StepResult result = engine.step(step, late || done);
    training.steps = step + 1 - first_step;
    // A rank that failed has computed on stale values: the step has no figures.
    if (result.stop && note_failure(world, engine, training)) break;
    training.samples.push_back({result, engine.timer().times()});
    ahead.step_s = result.time_s;
    events.after_step(step, result);

    const std::string trouble = non_finite_reason(plan.config.precision, result);
    const bool failed = engine.failure().code() != Exit::ok;  // behind the votes of the step
    const AfterStep next = agree_after_step(world, failed || !trouble.empty());
    if (next == AfterStep::fail) {
      if (note_failure(world, engine, training)) break;
      training.outcome = Exit::non_finite;
      training.cause_unknown = true;
      training.reason = trouble_of(world, step, result, trouble);
      break;
    }
    const int64_t every = run.check_replicas_every;
    if (every > 0 && (step + 1) % every == 0 && !weights_are_sound(world, engine, training)) break;
    const bool stopped = (result.stop || next == AfterStep::stop) && !last;
    if (stopped) note_stop(world, deadline, late, training);
    const bool complete = last || (stopped && training.outcome == Exit::ok);
    bool reached = false;
    if (evaluate_every > 0 && (complete || (!stopped && (step + 1) % evaluate_every == 0))) {
      const double before_s = training.evaluation_s;
      reached = evaluate(world, engine, plan, communicators, step + 1, training);
      if (note_failure(world, engine, training)) break;
      ahead.evaluation_s = std::max(ahead.evaluation_s, training.evaluation_s - before_s);
      events.after_evaluation(training.evaluations.back());
    }
    const auto save = [&] {
      training.samples.back().checkpoint_s =
          checkpoints.after_step(step + 1, last || stopped || reached,
                                 [&] { return weights_are_sound(world, engine, training); });
    };
    try_to_save(training, save);
    if (has_failed(training) || reached || stopped) break;
  }
  sensing.end();
  training.exposed_s = engine.timer().exposed_s();
  // A checkpoint in flight is good, whatever ended the run.
  try_to_save(training, [&] { checkpoints.finish(); });
  return training;
}

}  // namespace gptbench
