// The commands of gptpost.
#pragma once

#include <functional>
#include <string>

#include "post/load.h"
#include "post/options.h"

namespace gptbench {

// Reads the files of `options`, prints (or writes) what its command says; files that are passed
// over are named on standard error. Returns the exit status. Throws Error(Exit::io) where the
// output cannot be written.
int run_command(const Options& options);

// Runs `body` and returns its exit status. An exception becomes one line on standard error and an
// exit status.
int exit_status_of(const std::function<int()>& body);

// The page of `show`: 80 columns.
std::string show_page(const std::string& path, const Record& record);

// The page of `compare`: B, C, ... against A, the first group, each of at least one run. First a
// line for each that says whether it is slower, faster, no different, not decided or not
// comparable. Then for each its figures (medians over runs), B / A, its bounds (post/noise.h) and
// whether B is better or worse: of single runs from the spread of the timed steps, else from that
// of the runs, where a difference counts from `min_percent`.
std::string compare_groups(const std::vector<std::vector<LoadedRun>>& groups, double min_percent);

}  // namespace gptbench
