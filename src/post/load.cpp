#include "post/load.h"

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

}  // namespace gptbench
