// Where a run begins.
#pragma once

#include "engine/engine.h"
#include "run/attempt.h"
#include "run/record_parts.h"

namespace gptbench {

// Collective. Loads the checkpoint that run.resume asks for, or the weights of run.init_from; else
// the model is as drawn. Throws AgreedError where the checkpoint is of the last step: how that run
// ended (a job may be queued again after its end), Exit::usage where it is not known.
RunStart start_from(const Session& session, const Config& config, Engine& engine);

}  // namespace gptbench
