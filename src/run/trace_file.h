// The trace of one step (output.trace_step) as a file that Perfetto and chrome://tracing show.
#pragma once

#include "comm/mpi_world.h"
#include "engine/trace.h"
#include "plan/plan.h"
#include "project/project.h"

namespace gptbench {

// Collective. Rank 0 writes <directory>/trace.json in the Trace Event Format: one process per rank
// (the first 64), one lane for the host (computing, issuing, waiting) and one lane per other queue
// (its messages from start to observed completion). Throws Error(Exit::io) on rank 0.
void write_trace(MpiWorld& world, const Plan& plan, const Trace& trace);

// The same of a projected step, whose ranks, one of each stage, are called "projected rank ...": of
// its first micro-batches where it has many. Throws Error(Exit::io).
void write_trace(const std::string& directory, const StepTimeline& timeline);

}  // namespace gptbench
