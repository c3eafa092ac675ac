// Result files of unknown origin, read so that none of them can take the program down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "post/run_view.h"

namespace gptbench {

struct LoadedRun {
  std::string path;
  Record record;
  std::optional<PublishedCells> published;  // of a row that was read from a published table
};

// Bounds of one reader. A file of ours takes milliseconds of processor time and little more memory
// than its size; the wall clock is generous, since a file system may stall.
struct ReadLimits {
  unsigned processor_s = 20;
  unsigned wall_s = 300;
  uint64_t memory_bytes = uint64_t{8} << 30;  // of address space; not applied under sanitizers
};

// Reads each file in a child process, because HDF5 can crash, loop or ask for any amount of memory
// on a damaged file; what the child decoded comes back as a fresh file image of our own writer.
// Files that cannot be read are passed over and named in `problems`, one line each, which begins
// with the path. Order of `paths`.
std::vector<LoadedRun> load_results(const std::vector<std::string>& paths,
                                    std::vector<std::string>& problems,
                                    const ReadLimits& limits = {});

}  // namespace gptbench
