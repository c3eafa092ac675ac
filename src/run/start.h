// Where a run begins.
#pragma once

#include "engine/engine.h"
#include "run/attempt.h"
#include "run/record_parts.h"

namespace gptbench {

// Collective. Loads the checkpoint that run.resume asks for, or the weights of run.init_from; else
// the model is as drawn. Where a held-out loss belongs to the step of the checkpoint it is
// evaluated: the run that wrote it may have ended before that. Throws AgreedError where nothing is
// left to train, since the checkpoint is of the last step or reaches the target: how that run ended
// (a job may be queued again after its end), Exit::ok where it was stopped and reaches the target,
// Exit::usage where its end is not known.
RunStart start_from(const Session& session, const Config& config, Engine& engine);

}  // namespace gptbench
