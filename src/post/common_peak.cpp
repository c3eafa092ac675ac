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

// The share of a node that a rank has: the ceiling may depend on it, as where ranks share the
// bandwidth of memory.
std::string share_of_node(const Record& record) {
  return std::to_string(record.summary.ranks_per_node) + "\n" + threads_of(record);
}

// What else the ceiling of a run depends on.
std::string group_of(const Record& record) {
  const RunView run(record);
  std::vector<std::string> parts = {record.machine, record.summary.device.name};
  for (const auto& [group, key] : {std::pair{"run", "device"}, std::pair{"precision", "compute"},
                                   std::pair{"precision", "tf32"}})
    parts.push_back(key_cell(run, group, key));
  for (const char* key : {"family", "hidden_size", "num_attention_heads", "num_kv_heads",
                          "ffn_hidden_size", "vocab_size"})
    parts.push_back(key_cell(run, "model", key));
  return join(parts, "\n");
}

struct RunCeilings {
  std::vector<double> steady;  // TFLOP/s
  size_t runs = 0;
};
using CeilingsByShare = std::map<std::string, RunCeilings>;

// Where the ceiling hardly depends on the share of a node, each share gets the ceilings of all.
// Shares without a steady ceiling stay apart, since nothing says what theirs would be.
void unite_if_they_agree(CeilingsByShare& shares) {
  RunCeilings all;
  std::vector<double> medians;
  for (const auto& [share, ceilings] : shares) {
    if (ceilings.steady.empty()) continue;
    medians.push_back(median(ceilings.steady));
    all.steady.insert(all.steady.end(), ceilings.steady.begin(), ceilings.steady.end());
    all.runs += ceilings.runs;
  }
  if (medians.empty()) return;
  const auto [least, largest] = std::minmax_element(medians.begin(), medians.end());
  if (*largest > (1.0 + max_ceiling_spread) * *least) return;
  for (auto& [share, ceilings] : shares)
    if (!ceilings.steady.empty()) ceilings = all;
}

bool is_timed(const RunView& run) {
  return !run.is_published() && run.counts() && run.summary().rate.sec_per_it > 0.0;
}

bool has_mfu(const RunView& run) {
  return run.rates().mfu_percent() > 0.0;
}

// Why a run has no MFU. Runs whose ceiling varied share one text, so that a table states it once.
std::string reason_of(const RunView& run) {
  if (!has_ceiling(run.record()) || run.summary().gemm_ceiling.spread <= max_ceiling_spread)
    return reason_without_mfu(run.summary());
  return printed(
      "the measured GEMM ceiling varied by more than %.0f %% within the run; repeat it on a quiet "
      "machine, or set output.peak_tflops",
      100.0 * max_ceiling_spread);
}

}  // namespace

void share_ceilings(std::vector<LoadedRun>& runs) {
  std::map<std::string, CeilingsByShare> groups;
  for (const LoadedRun& run : runs) {
    if (!has_ceiling(run.record)) continue;
    RunCeilings& ceilings = groups[group_of(run.record)][share_of_node(run.record)];
    ++ceilings.runs;
    if (run.record.summary.flops.mfu > 0.0)
      ceilings.steady.push_back(run.record.summary.peak.tflops);
  }
  for (auto& [group, shares] : groups) unite_if_they_agree(shares);
  const auto source_of = [](const RunCeilings& ceilings, double peak) -> std::string {
    if (ceilings.runs == 1 || ceilings.steady.empty()) return peak_source::measured;
    double spread = 0.0;
    for (const double each : ceilings.steady)
      spread = std::max(spread, std::abs(each / peak - 1.0));
    return printed("median of the measured GEMM ceilings of %zu of %s", ceilings.steady.size(),
                   runs_text(ceilings.runs).c_str()) +
           (ceilings.steady.size() > 1 ? printed(", within %.1f %%", 100.0 * spread) : "");
  };
  for (LoadedRun& run : runs) {
    if (!has_ceiling(run.record)) continue;
    const RunCeilings& ceilings = groups[group_of(run.record)][share_of_node(run.record)];
    const double peak = median(ceilings.steady);
    set_peak(run.record.summary, peak, source_of(ceilings, peak));
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
      if (const std::string reason = reason_of(run); ++counts[reason] == 1)
        reasons.push_back(reason);
  std::vector<std::string> notes;
  for (const std::string& reason : reasons)
    notes.push_back("no MFU" +
                    (counts[reason] == runs.size() ? "" : " of " + runs_text(counts[reason])) +
                    ": " + reason);
  return notes;
}

}  // namespace gptbench
