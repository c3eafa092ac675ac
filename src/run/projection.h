// gptbench --project: a step on a machine that is not there, as text, JSON, result file and trace.
#pragma once

#include <string>

#include "project/report.h"
#include "record/record.h"
#include "run/command_line.h"

namespace gptbench {

// The projection as the record of a run of one step: verdict PROJECTED, no loss, no checks, no
// hosts. Times by region are those of the stage that computes longest, messages those of rank 0.
Record projected_record(const Deck& deck, const ProjectionReport& report, const std::string& argv);

// Returns what to print. Writes result.h5 and trace.json where line.result_directory names a
// directory. Throws Error: usage, io.
std::string run_projection(const CommandLine& line, const std::string& argv);

}  // namespace gptbench
