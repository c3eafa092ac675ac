// The operations of a plan as text: the step of one rank, program by program.
#pragma once

#include <string>

#include "plan/plan.h"

namespace gptbench {

// At most 100 columns where names are not longer. Sizes are those of the rank's largest
// micro-batch.
std::string print_operations(const Plan& plan);

// Where an operand begins: the tensor's name in a copy of flat space, else the distance from the
// start of the buffer. "parameters/h.0.ln_1.weight", "activations::h.0.ln_1+64".
std::string place_text(const Plan& plan, const Operand& operand);

// Bytes of the operands that an operation moves, each once, or twice where it is accumulated to. Of
// a table of embeddings at most one row per row of the operation.
int64_t bytes_moved(const Plan& plan, const Op& op, int64_t held_rows);

}  // namespace gptbench
