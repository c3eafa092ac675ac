// Places at which a test ends or stops the process, or lets it fail.
#pragma once

namespace gptbench {

// Kills this process where the environment has GPTBENCH_FAILPOINT=NAME, or NAME:n and this is the
// n-th call with that name. With "/stop" behind it stops it (SIGSTOP); with "/hang" the call never
// returns; with "/error" it throws Error(Exit::peer); with "/busy" it computes for 8 s, with
// "/starved" the same time with 0.5 % of a processor. For tests.
void failpoint(const char* name);

// Whether the environment names one.
bool failpoint_requested();

}  // namespace gptbench
