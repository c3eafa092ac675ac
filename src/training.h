// The timed loop over steps, and what it leaves for the record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "measure/record.h"
#include "plan/plan.h"
#include "sensing.h"

namespace gptbench {

// Local samples of one step.
struct StepSample {
  StepResult result;
  StepTimes times;
};

struct Training {
  std::vector<StepSample> samples;  // [step]
  Exit outcome = Exit::ok;          // ok, out_of_memory, non_finite, io or timeout; of all ranks
  std::string reason;               // on rank 0
};

// Runs the plan's steps with rank 0 printing one line each; calls after_first_step on all ranks
// before step 1 changes what step 0 left. Ends early, after the step in hand, when
// loss or gradient norm is not finite (of a scaled loss: the loss, or the norm at the least scale),
// when tokens cannot be read or memory runs out, when a rank
// has had SIGTERM or SIGUSR1, or when another step would pass the time limit (run.time_limit_s
// since `start_s`) or come too close to the end of the batch job (measure/job_limit.h).
// Communicator statistics and sensors cover the timed steps, the
// message counter all of them.
Training train(MpiWorld& world, Engine& engine, const Plan& plan,
               const CommunicatorTable& communicators, Sensing& sensing, double start_s,
               const std::function<void()>& after_first_step);

// Installs handlers for SIGTERM and SIGUSR1 that ask the loop to stop.
void watch_signals();

// Collective. Fills steps, timing, communication and throughput of the record on rank 0.
void record_training(MpiWorld& world, const Training& training, const Plan& plan,
                     const CommunicatorTable& communicators, Record& record);

}  // namespace gptbench
