#include "post/load.h"

#include <map>
#include <tuple>

#include "base/error.h"

namespace gptbench {

std::vector<LoadedRun> load_results(const std::vector<std::string>& paths,
                                    std::vector<std::string>& problems, const ReadLimits& limits) {
  std::vector<LoadedRun> runs;
  for (const std::string& path : paths) {
    try {
      runs.push_back({path, read_result_guarded(path, limits), std::nullopt});
    } catch (const Error& error) {
      problems.push_back(error.what());
    }
  }
  return runs;
}

void require_different_runs(const std::vector<LoadedRun>& runs, const std::string& command) {
  const auto identity = [](const Record& r) {
    return std::tuple(r.date_utc, r.provenance.argv, r.provenance.hostnames, r.provenance.slurm,
                      r.steps.time_s);
  };
  std::map<decltype(identity(Record{})), std::string> files;
  for (const LoadedRun& run : runs) {
    const auto [first, is_new] = files.emplace(identity(run.record), run.path);
    if (!is_new)
      throw Error(Exit::usage, command + ": " + first->second + " and " + run.path +
                                   " hold the same run, of " + run.record.date_utc +
                                   "; a run counts once: leave one of them out");
  }
}

}  // namespace gptbench
