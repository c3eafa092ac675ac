// A plan as text.
#pragma once

#include <string>
#include <vector>

#include "plan/stage_figures.h"

namespace gptbench {

// In 80 columns: grid, model, memory by class, FLOPs, messages. `stages`: stage_figures() of it.
std::string describe(const Plan& plan, const std::vector<StageFigures>& stages);

}  // namespace gptbench
