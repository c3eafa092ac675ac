// The timed loop over steps, and what it leaves for the record.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "base/error.h"
#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "record/record.h"
#include "run/sensing.h"

namespace gptbench {

// Local samples of one step: all that a rank keeps of it.
struct StepSample {
  StepResult result;
  StepTimes times;
};
static_assert(sizeof(StepSample) <= 256, "a run of a million steps keeps at most 256 MB per rank");

struct Training {
  std::deque<StepSample> samples;  // [step]; without the step in which tokens or memory failed
  int64_t steps = 0;               // executed, the failed one included
  ExposedTimes exposed_s{};        // of the steps after the warm-up, skipped ones included
  Exit outcome = Exit::ok;         // ok, out_of_memory, non_finite, io or timeout; of all ranks
  bool signalled = false;          // a signal ended it: little time is left; of all ranks
  std::string reason;              // on rank 0
};

// Runs the plan's steps with rank 0 printing one line each; calls after_first_step on all ranks
// before step 1 changes what step 0 left. Ends early, after the step in hand, when
// loss or gradient norm is not finite (of a scaled loss: the loss, or the norm at the least scale),
// when tokens cannot be read or memory runs out (that step leaves no sample), when a rank
// has had a signal, or when another step would pass the time limit (run.time_limit_s
// since `start_s`) or come too close to the end of the batch job (measure/job_limit.h).
// Communicator statistics, exposed times and sensors cover the steps after the warm-up, the
// message counter all of them.
Training train(MpiWorld& world, Engine& engine, const Plan& plan,
               const CommunicatorTable& communicators, Sensing& sensing, double start_s,
               const std::function<void()>& after_first_step);

// Installs handlers for SIGTERM, SIGINT and SIGUSR1 that ask the loop to stop. A second SIGINT, a
// second or more after the first signal, ends the process at once.
void watch_signals();

// Collective. Fills steps, timing, communication and throughput of the record on rank 0.
void record_training(MpiWorld& world, const Training& training, const Plan& plan,
                     const CommunicatorTable& communicators, Record& record);

}  // namespace gptbench
