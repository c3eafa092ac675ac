// Operations that follow one another and are one where the device's library forms both at once.
#pragma once

#include "plan/plan.h"

namespace gptbench {

// Turns `linear`, after which `activation` would be issued, into both, where they are a linear
// layer and the GELU of its output, or the gradient of a linear layer's input and the GELU's
// gradient in its place; false, and nothing done, where they are not. Factors of other types than
// activations (fp8) are left alone.
bool fuse_activation(const Plan& plan, Op& linear, const Op& activation);

// The same of `statistics` and the finish of the loss of the same logits: one pass over them.
bool fuse_loss(const Plan& plan, Op& statistics, const Op& finish);

// The same of `residual`, a sum of the residual stream, and the norm of the sum that follows: the
// norm then forms the sum in its pass (Slot::sum).
bool fuse_norm(Op& residual, const Op& norm);

}  // namespace gptbench
