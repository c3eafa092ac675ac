// How FLOPs are counted: conventions of publications and the operations themselves.
#pragma once

#include "base/choice.h"

namespace gptbench {

GPTBENCH_CHOICE(FlopsConvention, mpt, mpt_star, megatron, causal, exact)

}  // namespace gptbench
