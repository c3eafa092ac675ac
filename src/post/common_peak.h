// One peak for runs that are compared.
#pragma once

#include <vector>

#include "post/load.h"

namespace gptbench {

// Runs on one machine, in one type and with as many ranks per node, whose peak is a measured GEMM
// ceiling, get the median of their ceilings as their common peak, and MFU and HFU against it: else
// the noise of each ceiling would enter their comparison. Ceilings that varied within their run
// (mfu 0) do not count; where no other is there, the runs keep no peak.
void share_ceilings(std::vector<LoadedRun>& runs);

}  // namespace gptbench
