// The end of the batch job around a run.
#pragma once

namespace gptbench {

// Seconds from now until the job must have ended, some kept back for what follows the last step
// (checks, the result file): a tenth of what is left, at most a minute. From SLURM_JOB_END_TIME
// (seconds since 1970), which newer versions of Slurm set and jobscripts/ sets for the others.
// Infinity where no job end is offered, where it makes no sense and where it has passed.
double seconds_until_job_end();

// The reason in the result of a run that this end stops. Sweeps look for it (sweep/rows.h).
inline constexpr const char* job_end_reason =
    "stopped: the job's time limit leaves no room for another step";

}  // namespace gptbench
