// A plan as text.
#pragma once

#include <string>
#include <vector>

#include "plan/stage_figures.h"
#include "plan/traffic.h"

namespace gptbench {

// In 80 columns: grid, model, memory by class, FLOPs, messages. `stages`: stage_figures() of it.
std::string describe(const Plan& plan, const std::vector<StageFigures>& stages);
// The same in about a dozen lines, for the report of a run: without the order of the axes and the
// split of sequences, and with the largest messages alone.
std::string describe_briefly(const Plan& plan, const std::vector<StageFigures>& stages);

// The last line of --plan, for grep: "GPTBENCH plan params=N ranks=N memory_bytes=N limit_bytes=N
// fits=yes|no". memory_bytes: device memory of the rank with the highest peak. limit_bytes:
// memory.device_memory_gib; 0 where the deck sets no limit, and then every plan fits.
std::string plan_line(const Plan& plan, const std::vector<StageFigures>& stages,
                      int64_t limit_bytes);

// The figures of both as one JSON object, in bytes, FLOPs and calls; `traffic` where it is not
// empty.
std::string plan_json(const Plan& plan, const std::vector<StageFigures>& stages,
                      int64_t limit_bytes, const Traffic& traffic);
// Parts of it that other reports have as well.
std::string grid_json(const Plan& plan);
std::string messages_json(const std::vector<CommTotal>& comm);

}  // namespace gptbench
