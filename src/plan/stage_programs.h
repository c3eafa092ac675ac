// The programs of one virtual stage of this rank: embedding, layers and head in their order,
// messages to the stages before and after it, and what is gathered and loaded ahead of its use.
// Internal to the plan layer.
#pragma once

#include "plan/gradients.h"
#include "plan/weights.h"

namespace gptbench {

// Programs of the kinds receive_forward to weight_last, and their buffers. chunk: of those of this
// rank. fp8: null where no GEMM is in fp8. splits_gradients: gradients of parameters are formed by
// programs of their own (zero_bubble).
void make_stage_programs(PlanBuilder& builder, Weights& weights, Gradients& gradients,
                         const Fp8State* fp8, int32_t chunk, bool splits_gradients);

}  // namespace gptbench
