#include "record/flops.h"

#include "base/flops_convention.h"

namespace gptbench {
namespace {

// A record that does not say it has none.
double factor_of(const Summary& summary) {
  return summary.flops.hardware_factor > 0.0 ? summary.flops.hardware_factor : 1.0;
}

double recorded(const Summary& summary, const std::string& name) {
  const auto found = summary.flops.per_step.find(name);
  return found == summary.flops.per_step.end() ? 0.0 : found->second;
}

}  // namespace

bool is_convention(const std::string& name) {
  return name.rfind("exact_", 0) != 0;
}

double fp8_share(const Summary& summary) {
  const double executed =
      recorded(summary, name_of(FlopsConvention::exact)) + recorded(summary, "exact_recomputed");
  return executed > 0.0 ? recorded(summary, "exact_fp8") / executed : 0.0;
}

double model_flops(const Summary& summary, const std::string& convention) {
  const double flops = recorded(summary, convention);
  return convention == name_of(FlopsConvention::megatron) ? flops / factor_of(summary) : flops;
}

double hardware_flops(const Summary& summary, const std::string& convention) {
  const double flops = recorded(summary, convention);
  if (convention == name_of(FlopsConvention::megatron)) return flops;
  const std::string counted = convention + "_recomputed";
  if (summary.flops.per_step.count(counted) > 0) return flops + recorded(summary, counted);
  return flops * factor_of(summary);
}

std::string reason_without_mfu(const Summary& summary) {
  return summary.peak.note.empty() ? "no peak is known" : summary.peak.note;
}

std::string impossible_utilisation(double mfu, double hfu, const std::string& convention) {
  if (mfu <= 1.0 && hfu <= 1.0) return "";
  const bool is_mfu = mfu > 1.0;
  // This counts no more than is done; HFU takes recomputation as a factor.
  const bool is_done = is_mfu && convention == name_of(FlopsConvention::causal);
  return std::string("WARNING: ") + (is_mfu ? "MFU" : "HFU") + " above 100 %, " +
         (is_done ? "" : "the convention counts work that is not done, or ") +
         "the peak is too low";
}

std::string utilisation_key(double mfu, double hfu) {
  if (impossible_utilisation(mfu, hfu).empty()) return "";
  return std::string(" warning=") + (mfu > 1.0 ? "mfu" : "hfu") + "_above_100_percent";
}

}  // namespace gptbench
