// The timed loop over steps, and what it leaves for the record.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoints.h"
#include "comm/agree.h"
#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "run/record_parts.h"
#include "run/sensing.h"

namespace gptbench {

// Local samples of one step: everything that a rank keeps about it.
struct StepSample {
  StepResult result;
  StepTimes times;
  double checkpoint_s = 0.0;  // that training waited for a checkpoint after the step
};
static_assert(sizeof(StepSample) <= 256, "a run of a million steps keeps at most 256 MB per rank");

using MessageSums = std::array<std::array<CommStatistics, num_op_kinds>, num_axes>;

// The held-out loss after a number of steps.
struct Evaluation {
  int64_t steps = 0;  // from the start of training
  double loss = 0.0;  // mean over the held-out batches; global, on rank 0
};

// Collective. The mean loss over the held-out batches with the present weights; on rank 0.
double held_out_loss(MpiWorld& world, Engine& engine);
// Collective. Whether this loss, of rank 0, is at most convergence.target_loss, where there is one.
bool reaches_target(MpiWorld& world, const ConvergenceConfig& convergence, double loss);

// Time that a run takes from the end of a step on if another step follows, as seen so far.
struct TimeAhead {
  double step_s = 0.0;        // that step, as long as the last one
  double checkpoint_s = 0.0;  // the longest
  double evaluation_s = 0.0;  // the longest
};
// Whether the step that ends at `end_s` must be the last one: the time ahead would pass the
// deadline. Both by now_s().
bool is_too_late(double end_s, const TimeAhead& ahead, double deadline_s);

// Called on all ranks, outside of the timed steps.
struct TrainingEvents {
  std::function<void(int64_t step, const StepResult&)> after_step;
  std::function<void(const Evaluation&)> after_evaluation;
};

struct Training {
  // [step of this run]; without the step in which tokens failed, or memory before its update
  std::deque<StepSample> samples;
  int64_t first_step = 0;    // from 0; other than 0 where an earlier run is continued
  int64_t steps = 0;         // executed by this run, the failed one included
  ExposedTimes exposed_s{};  // of the steps after the warm-up, skipped ones included
  std::vector<Evaluation> evaluations;
  double evaluation_s = 0.0;          // of all evaluations, which are part of no step
  MessageSums evaluation_messages{};  // of the communicators' statistics, what evaluations sent
  // ok, out_of_memory, non_finite, invalid (replicas differ), io or timeout; same on all ranks
  Exit outcome = Exit::ok;
  double deadline_s = std::numeric_limits<double>::infinity();  // of the run, by now_s()
  bool signalled = false;  // a signal ended it: little time is left; same on all ranks
  // Loss or norm of the last step are not finite: a search may find where; same on all ranks
  bool cause_unknown = false;
  std::string reason;              // on rank 0
  int64_t checked_steps = -1;      // steps after which weights were checked last, or -1
  VerifyEntry replicas_identical;  // of that check, on rank 0
};

// Collective, outside of steps. Whether the weights after the last step are finite and the same in
// all replicas; they are read once, even where several callers ask. If not, the outcome says so,
// unless the run has failed before.
bool weights_are_sound(MpiWorld& world, Engine& engine, Training& training);

// The outcome of a run that could not write a file, on all ranks: that of `error`; of a run that
// has failed before, its own stays.
void note_unwritten(const AgreedError& error, Training& training);

// Runs the plan's steps from `first_step` on: up to run.steps, or as many as end after
// run.duration_s from the end of the warm-up, which is that of this run. When after_step is called,
// gradients are still those of the step. Ends early, after the current step, when
//   - the held-out loss, evaluated every convergence.evaluate_every steps, is at most target_loss,
//   - loss or gradient norm is not finite (scaled loss: the loss, or the norm at the least scale),
//   - weights are not finite when they are to be saved,
//   - tokens cannot be read or memory runs out (that step leaves no sample, unless it lacks its
//     update alone),
//   - replicas differ, which is looked at after every run.check_replicas_every steps and before a
//     checkpoint,
//   - a rank received a signal,
//   - a checkpoint cannot be written (io),
//   - another step would pass run.time_limit_s (since `start_s`) or come too close to the end of
//     the batch job (measure/job_limit.h).
// A run that is complete ends with an evaluation, one that is cut short without.
// Communicator statistics, exposed times and sensors cover the steps after the warm-up, the
// message counter all of them. Checkpoints are written when they are due, and after the last step
// unless its weights are useless; the time is of no step, as that of evaluations is not.
Training train(MpiWorld& world, Engine& engine, const Plan& plan,
               const CommunicatorTable& communicators, Sensing& sensing, Checkpoints& checkpoints,
               int64_t first_step, double start_s, const TrainingEvents& events);

// How the times of all ranks are gathered.
struct TimesGathering {
  bool reduces = false;       // over ranks, as reduce_over_ranks() does (io/reduce.h)
  int64_t steps_at_once = 1;  // of one series; rank 0 holds those of all ranks
  int64_t warmup_steps = 0;   // first samples, which are not timed
};
// Collective. Appends to `out`, on rank 0, the times of all programs and regions, [step, rank], and
// of each step the time of the slowest rank; where it reduces, rank_computing_s. The samples of all
// ranks are of the same steps.
void gather_times(MpiWorld& world, const std::deque<StepSample>& samples,
                  const TimesGathering& gathering, TrainingSeries& out);

// Collective. The series of all ranks, on rank 0.
TrainingSeries gather_series(MpiWorld& world, const Training& training, const Plan& plan,
                             const CommunicatorTable& communicators);

}  // namespace gptbench
