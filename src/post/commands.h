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

// The page of `compare`, B against A, at least one run each. Its first line says whether B is
// slower, faster, no different, not decided or not comparable. Then each figure (medians over
// runs), B / A, its bounds (post/noise.h) and whether B is better or worse: of single runs from the
// spread of the timed steps, else from that of the runs, where a difference counts from
// `min_percent`.
std::string compare_page(const std::vector<LoadedRun>& a, const std::vector<LoadedRun>& b,
                         double min_percent);
// B, C, ... against A, the first group: all answers, a line each, then the page of each.
std::string compare_groups(const std::vector<std::vector<LoadedRun>>& groups, double min_percent);

}  // namespace gptbench
