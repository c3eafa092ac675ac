#include "post/common_peak.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/choice.h"
#include "base/text.h"
#include "post/cells.h"
#include "post/style.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {
namespace {

bool has_ceiling(const Record& record) {
  return record.summary.peak.source == peak_source::measured;
}

// Threads of a rank of a host, "8 threads", by the description of its device in the record
// (device/host_device.cpp), which files of all versions have; "" of other devices.
std::string threads_of(const Record& record) {
  for (const std::string& line : split(record.provenance.chosen_algorithms, '\n'))
    if (line.rfind("device=", 0) == 0)
      for (const std::string& part : split(line, ','))
        if (part.find(" thread") != std::string::npos) return trim(part);
  return "";
}

// What the ceiling of a run depends on, but the ranks per node.
std::string group_of(const Record& record) {
  const RunView run(record);
  std::vector<std::string> parts = {record.machine, record.summary.device.name, threads_of(record)};
  for (const auto& [group, key] : {std::pair{"run", "device"}, std::pair{"precision", "compute"},
                                   std::pair{"precision", "tf32"}})
    parts.push_back(key_cell(run, group, key));
  for (const char* key : {"family", "hidden_size", "num_attention_heads", "num_kv_heads",
                          "ffn_hidden_size", "vocab_size"})
    parts.push_back(key_cell(run, "model", key));
  return join(parts, "\n");
}

// The measured ceilings of the runs of a group, and how many runs it has.
struct GroupCeilings {
  std::map<int64_t, std::vector<double>> steady;  // TFLOP/s, by ranks per node
  size_t runs = 0;
};

struct CommonPeak {
  double tflops = 0.0;  // 0: no ceiling was steady, or they disagree
  std::string source = peak_source::measured;
  std::string reason;  // why there is none
};

// Ranks of a node that share its bandwidth of memory have a lower ceiling than one that has it
// alone. What they lose by that shows in their utilisation, as it does in HPL.
CommonPeak common_peak(const GroupCeilings& ceilings) {
  std::vector<double> all;
  std::map<double, int64_t> medians;  // and their ranks per node
  for (const auto& [ranks_per_node, steady] : ceilings.steady) {
    medians[median(steady)] = ranks_per_node;
    all.insert(all.end(), steady.begin(), steady.end());
  }
  if (all.empty())
    return {0.0, peak_source::measured,
            printed("the measured GEMM ceiling varied by more than %.0f %%; repeat the run on a "
                    "quiet machine, or set output.peak_tflops",
                    100.0 * max_ceiling_spread)};
  if (ceilings.runs == 1) return {all.front(), peak_source::measured, ""};
  const auto [largest, ranks_per_node] = *medians.rbegin();
  const bool agree = largest <= (1.0 + max_ceiling_spread) * medians.begin()->first;
  const std::vector<double>& used = agree ? all : ceilings.steady.at(ranks_per_node);
  const std::string which =
      "measured GEMM ceilings" +
      (agree ? ""
             : printed(" with %lld rank%s per node", static_cast<long long>(ranks_per_node),
                       ranks_per_node == 1 ? "" : "s"));
  if (const double deviation = majority_deviation(used); deviation > max_ceiling_spread)
    return {0.0, peak_source::measured,
            printed("at least half of the %zu %s are %.1f %% or more from their median (allowed: "
                    "%.0f %%); repeat the runs on a quiet machine, or set output.peak_tflops",
                    used.size(), which.c_str(), 100.0 * deviation, 100.0 * max_ceiling_spread)};
  const double tflops = median(used);
  size_t count = 0;
  double spread = 0.0;
  for (const double each : used) {
    const double deviation = std::abs(each / tflops - 1.0);
    if (deviation > max_ceiling_spread) continue;
    ++count;
    spread = std::max(spread, deviation);
  }
  CommonPeak peak{tflops,
                  printed("median of the %s, %zu of %s", which.c_str(), count,
                          runs_text(ceilings.runs).c_str()),
                  ""};
  if (used.size() > 1) peak.source += printed(" within %.1f %%", 100.0 * spread);
  return peak;
}

bool is_timed(const RunView& run) {
  return !run.is_published() && run.counts() && run.summary().rate.sec_per_it > 0.0;
}

bool has_mfu(const RunView& run) {
  return run.rates().mfu_percent() > 0.0;
}

}  // namespace

void share_ceilings(std::vector<LoadedRun>& runs) {
  std::map<std::string, GroupCeilings> groups;
  for (const LoadedRun& run : runs) {
    if (!has_ceiling(run.record)) continue;
    GroupCeilings& ceilings = groups[group_of(run.record)];
    ++ceilings.runs;
    const Summary& s = run.record.summary;
    if (s.flops.mfu > 0.0) ceilings.steady[s.ranks_per_node].push_back(s.peak.tflops);
  }
  for (LoadedRun& run : runs) {
    if (!has_ceiling(run.record)) continue;
    const CommonPeak peak = common_peak(groups[group_of(run.record)]);
    set_peak(run.record.summary, peak.tflops, peak.source);
    if (peak.tflops <= 0.0) run.record.summary.peak.note = peak.reason;
  }
}

std::string peaks_of(const Runs& runs) {
  std::set<std::string> peaks;
  for (const RunView& run : runs)
    if (is_timed(run) && has_mfu(run)) peaks.insert(run.rates().peak_text());
  if (peaks.empty()) return "";
  return (peaks.size() == 1 ? "peak " : "peaks ") + join({peaks.begin(), peaks.end()}, ", ");
}

std::vector<std::string> reasons_without_mfu(const Runs& runs) {
  std::vector<std::string> reasons;
  std::map<std::string, size_t> counts;
  for (const RunView& run : runs)
    if (is_timed(run) && !has_mfu(run))
      if (const std::string reason = reason_without_mfu(run.summary()); ++counts[reason] == 1)
        reasons.push_back(reason);
  std::vector<std::string> notes;
  for (const std::string& reason : reasons)
    notes.push_back("no MFU" +
                    (counts[reason] == runs.size() ? "" : " of " + runs_text(counts[reason])) +
                    ": " + reason);
  return notes;
}

}  // namespace gptbench
