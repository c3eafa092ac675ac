// The trace of one step (output.trace_step) as a file that Perfetto and chrome://tracing show.
#pragma once

#include <set>

#include "comm/mpi_world.h"
#include "engine/trace.h"
#include "plan/plan.h"
#include "project/project.h"

namespace gptbench {

constexpr size_t max_traced_ranks = 64;
// Ranks whose operations are written: one of each pipeline stage (the first along all other axes),
// as far as they reach, then the lowest others. With tensor = 8 and pipeline = 16 in the default
// order, ranks 0, 8, ... 120, and of the others 1 to 54: the first 64 would be of eight stages.
std::set<int64_t> traced_ranks(const Grid& grid);

// Collective. Rank 0 writes <directory>/trace.json in the Trace Event Format: one process per rank
// (of traced_ranks()), one lane for the host (computing, issuing, waiting) and one lane per other
// queue (its messages from start to observed completion). Throws AgreedError(Exit::io).
void write_trace(MpiWorld& world, const Plan& plan, const Trace& trace);

// The same of a projected step, whose ranks, one of each stage, are called "projected rank ...".
// Where not all micro-batches were walked, each rank has a label: "3 of 128 micro-batches". Throws
// Error(Exit::io).
void write_trace(const std::string& directory, const StepWork& work, const StepTimeline& timeline);

}  // namespace gptbench
