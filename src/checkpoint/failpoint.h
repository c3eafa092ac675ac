// Places at which a test ends the process without warning.
#pragma once

namespace gptbench {

// Kills this process where the environment has GPTBENCH_FAILPOINT=NAME, or NAME:n and this is the
// n-th call with that name. For tests.
void failpoint(const char* name);

}  // namespace gptbench
