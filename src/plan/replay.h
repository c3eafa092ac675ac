// Whether the steps of a plan are all alike to the device, so that one may be recorded and the
// others be replays of it (CUDA graphs).
#pragma once

#include <string>

#include "plan/plan.h"

namespace gptbench {

// Why not, in one line without a full stop; "" where they are. What differs from step to step and
// is put into the device's memory beforehand does no harm: tokens, lengths of sequences, the vote
// to stop, the weight of a target, the corrections of AdamW, the seed of dropout's masks. Messages
// that a library enqueues on streams are recorded there with what they wait for, as long as all
// ranks of a group take part in each.
std::string replay_obstacle(const Plan& plan);

}  // namespace gptbench
