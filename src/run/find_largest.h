// The search for the largest batch that lasts a run (run.find_largest).
#pragma once

#include "run/attempt.h"
#include "run/largest_batch.h"

namespace gptbench {

// Collective. Runs the largest candidate by plan and allocation; if memory runs out nevertheless,
// smaller ones until one lasts, then those in between. The reason of the returned attempt says why
// no larger one.
Attempt find_largest(const Session& session, const BatchCandidates& candidates);

}  // namespace gptbench
