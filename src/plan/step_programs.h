// The programs around the micro-batches: zeroing, the gradient's norm, AdamW, and what ZeRO moves.
// Internal to the plan layer.
#pragma once

#include "plan/weights.h"

namespace gptbench {

// Operations of begin_step and end_step.
void emit_begin_step(PlanBuilder& builder, const ParameterLayout& layout, Weights& weights);
void emit_end_step(PlanBuilder& builder, const ParameterLayout& layout);

}  // namespace gptbench
