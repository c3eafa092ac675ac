// The console report, as HPL's: rank 0 prints, 80 columns, one greppable last line.
#pragma once

#include <string>

#include "record/record.h"

namespace gptbench {

std::string rule(char c);  // 80 times c and a line end
// A title between rules.
std::string heading(const std::string& title);

// "gptbench 0.1.0 (commit)  2 ranks on 1 node", date, machine.
std::string banner(const Record& record);

std::string progress_heading();
// One line per step; `step` from 0. left_s: estimate of the time until the last step ends.
std::string progress_line(int64_t step, int64_t steps, bool warmup, double loss, double grad_norm,
                          double step_s, double tokens_per_s, double left_s);

// Printed below the line of a step whose scaled gradient was not finite.
std::string skipped_line(double loss_scale, double next_loss_scale);

// Time by region of the slowest rank (largest sum over the timed steps), throughput, memory,
// messages.
std::string performance_report(const Record& record);
// Each check with value, threshold and outcome, then verdict and reason.
std::string verification_report(const Record& record);
// "GPTBENCH status=OK verdict=VALID ..." with name=value pairs, for grep.
std::string last_line(const Record& record, const std::string& result_file);

}  // namespace gptbench
