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

}  // namespace gptbench
