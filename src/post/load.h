// Result files of unknown origin, read so that none of them can take the program down.
#pragma once

#include <string>
#include <vector>

#include "measure/record.h"

namespace gptbench {

struct LoadedRun {
  std::string path;
  Record record;
};

// Reads each file in a child process, because HDF5 can crash, loop or ask for any amount of memory
// on a damaged file; what the child decoded comes back as a fresh file image of our own writer.
// Files that cannot be read are passed over and named in `problems`, one line each, which begins
// with the path. Order of `paths`.
std::vector<LoadedRun> load_results(const std::vector<std::string>& paths,
                                    std::vector<std::string>& problems);

}  // namespace gptbench
