#include "post/common_peak.h"

#include <map>
#include <tuple>

#include "record/steps.h"

namespace gptbench {
namespace {

bool has_ceiling(const Record& record) {
  return record.summary.peak.source == "measured GEMM ceiling";
}

std::tuple<std::string, std::string, int64_t> group_of(const Record& record) {
  return {record.machine, key_text(record, "precision", "compute"), record.summary.ranks_per_node};
}

}  // namespace

void share_ceilings(std::vector<LoadedRun>& runs) {
  std::map<std::tuple<std::string, std::string, int64_t>, std::vector<double>> ceilings;
  for (const LoadedRun& run : runs)
    if (has_ceiling(run.record) && run.record.summary.flops.mfu > 0.0)
      ceilings[group_of(run.record)].push_back(run.record.summary.peak.tflops);
  for (LoadedRun& run : runs)
    if (has_ceiling(run.record))
      set_peak(run.record.summary, median(ceilings[group_of(run.record)]),
               run.record.summary.peak.source);
}

}  // namespace gptbench
