// The runs that a command of gptpost works on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/guarded_read.h"
#include "post/run_view.h"

namespace gptbench {

struct LoadedRun {
  std::string path;
  Record record;
  std::optional<PublishedCells> published;  // set for a row of a published table
};

// Files that cannot be read are passed over and named in `problems`, one line each, which begins
// with the path. Order of `paths`.
std::vector<LoadedRun> load_results(const std::vector<std::string>& paths,
                                    std::vector<std::string>& problems,
                                    const ReadLimits& limits = {});

// Throws Error(Exit::usage), naming both files, where two of them hold one run (a copy, or a file
// given twice): it would count as repeated runs without any noise. `command` begins the message.
void require_different_runs(const std::vector<LoadedRun>& runs, const std::string& command);

}  // namespace gptbench
