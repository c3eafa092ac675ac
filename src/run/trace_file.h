// The trace of one step (output.trace_step) as a file that Perfetto and chrome://tracing show.
#pragma once

#include "comm/mpi_world.h"
#include "engine/trace.h"
#include "plan/plan.h"

namespace gptbench {

// Collective. <directory>/trace.json in the Trace Event Format, written by rank 0: of the first 64
// ranks (one process each), in the lane of the host computing, issuing and waiting, in the lane of
// each other queue its messages from start to completion seen. Throws Error(Exit::io) on rank 0.
void write_trace(MpiWorld& world, const Plan& plan, const Trace& trace);

}  // namespace gptbench
