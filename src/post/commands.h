// The commands of gptpost.
#pragma once

#include <functional>
#include <string>

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

// The page of `compare`: figures of both runs, their ratio, its bounds from the spread of the timed
// steps (post/noise.h), and whether a difference is beyond them.
std::string compare_page(const std::string& path_a, const Record& a, const std::string& path_b,
                         const Record& b);

}  // namespace gptbench
