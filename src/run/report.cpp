#include "run/report.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {
namespace {

const RankSeries* find(const Record& record, const std::string& name) {
  for (const RankSeries& series : record.timing)
    if (series.name == name) return &series;
  return nullptr;
}

// Sum over the timed steps for one rank.
double timed_sum(const Record& record, const RankSeries& series, int64_t rank) {
  double sum = 0.0;
  for (int64_t step = 0; step < series.steps; ++step)
    if (is_timed(record, step))
      sum += series.values[static_cast<size_t>(step * series.ranks + rank)];
  return sum;
}

int64_t slowest_rank(const Record& record, const RankSeries& steps) {
  int64_t slowest = 0;
  for (int64_t rank = 1; rank < steps.ranks; ++rank)
    if (timed_sum(record, steps, rank) > timed_sum(record, steps, slowest)) slowest = rank;
  return slowest;
}

std::string breakdown(const Record& record) {
  const RankSeries* steps = find(record, "step");
  if (steps == nullptr || record.summary.timed_steps == 0) return "";
  const int64_t rank = slowest_rank(record, *steps);
  const double timed = static_cast<double>(record.summary.timed_steps);
  const double whole = timed_sum(record, *steps, rank);
  std::string text =
      printed("Time of the slowest rank (%lld), mean of %lld timed steps\n",
              static_cast<long long>(rank), static_cast<long long>(record.summary.timed_steps));
  for (const RankSeries& series : record.timing) {
    const double sum = timed_sum(record, series, rank);
    text += printed("  %-28s %10s  %5.1f %%\n", series.name.c_str(),
                    format_seconds(sum / timed).c_str(), 100.0 * sum / whole);
  }
  return text;
}

std::string throughput(const Record& record) {
  const Summary& s = record.summary;
  std::string text;
  text += printed("%-28s %12s  (%s to %s, %lld timed)\n", "Time per step, median",
                  format_seconds(s.sec_per_it).c_str(), format_seconds(s.sec_per_it_min).c_str(),
                  format_seconds(s.sec_per_it_max).c_str(), static_cast<long long>(s.timed_steps));
  text += printed("%-28s %12.1f tokens/s, %.4g sequences/s\n", "Throughput", s.tokens_per_s,
                  s.samples_per_s);
  text += "Model TFLOP/s per rank, by FLOPs convention\n";
  for (const auto& entry : s.flops_per_step) {
    const std::string& convention = entry.first;
    if (!is_convention(convention)) continue;
    text += printed(
        "  %-26s %12.4f%s\n", convention.c_str(),
        model_flops(s, convention) / s.sec_per_it / 1e12 / static_cast<double>(s.world_size),
        convention == s.flops_convention ? "  (the deck's convention)" : "");
  }
  if (fp8_share(s) > 0.0)
    text += printed("%-28s %11.1f %% of the FLOPs executed\n", "In fp8", 100.0 * fp8_share(s));
  if (s.peak_tflops <= 0.0) return text;
  text +=
      printed("%-28s %12.4f TFLOP/s per rank (%s)\n", "Peak", s.peak_tflops, s.peak_source.c_str());
  if (!s.peak_note.empty()) text += hanging("  ", s.peak_note);
  text += printed("%-28s %11.1f %%\n", "Utilisation, model (MFU)", 100.0 * s.mfu);
  if (s.hfu != s.mfu) text += printed("%-28s %11.1f %%\n", "Hardware (HFU)", 100.0 * s.hfu);
  return text;
}

std::string loss_scale(const Record& record) {
  if (record.loss_scale.empty()) return "";
  return printed("%-28s %12g in the last step; %lld of %lld steps skipped and not timed\n",
                 "Loss scale", record.loss_scale.back(),
                 static_cast<long long>(record.summary.skipped_steps),
                 static_cast<long long>(record.loss_scale.size()));
}

std::string memory(const Record& record) {
  std::string text = "Memory, largest over ranks\n";
  for (const MemoryEntry& entry : record.memory)
    if (!entry.bytes.empty())
      text +=
          printed("  %-28s %12s\n", entry.name.c_str(),
                  format_bytes(*std::max_element(entry.bytes.begin(), entry.bytes.end())).c_str());
  return text;
}

std::string messages(const Record& record) {
  if (record.comm.empty()) return "";
  std::string text =
      "Messages per rank, timed steps      calls       payload      total    exposed\n";
  for (const CommEntry& entry : record.comm) {
    const size_t r = static_cast<size_t>(
        std::max_element(entry.exposed_s.begin(), entry.exposed_s.end()) - entry.exposed_s.begin());
    text += printed("  %-28s %10lld  %12s %10s %10s\n", (entry.axis + " " + entry.op).c_str(),
                    static_cast<long long>(entry.count[r]), format_bytes(entry.bytes[r]).c_str(),
                    format_seconds(entry.time_s[r]).c_str(),
                    format_seconds(entry.exposed_s[r]).c_str());
  }
  return text;
}

}  // namespace

std::string rule(char c) {
  return std::string(80, c) + "\n";
}

std::string heading(const std::string& title) {
  return rule('=') + title + "\n" + rule('=');
}

std::string banner(const Record& record) {
  const Summary& s = record.summary;
  return heading("gptbench " + record.software_version + "  commit " + record.git_commit + "  " +
                 record.date_utc) +
         printed("%lld rank%s on %lld node%s: %s\n", static_cast<long long>(s.world_size),
                 s.world_size == 1 ? "" : "s", static_cast<long long>(s.nodes),
                 s.nodes == 1 ? "" : "s", record.machine.c_str());
}

std::string progress_heading() {
  return "    step      loss  grad norm      time   tokens/s   time left\n";
}

std::string progress_line(int64_t step, int64_t steps, bool warmup, double loss, double grad_norm,
                          double step_s, double tokens_per_s, double left_s) {
  const std::string count = std::to_string(step + 1) + "/" + std::to_string(steps);
  return printed("%8s %9.5f %10.4g %9s %10.1f %11s%s\n", count.c_str(), loss, grad_norm,
                 format_seconds(step_s).c_str(), tokens_per_s, format_seconds(left_s).c_str(),
                 warmup ? "  warm-up" : "");
}

std::string skipped_line(double loss_scale, double next_loss_scale) {
  return printed("         skipped: gradient not finite; loss scale %g, next %g\n", loss_scale,
                 next_loss_scale);
}

std::string performance_report(const Record& record) {
  if (record.summary.timed_steps == 0)
    return "No step was timed.\n" + loss_scale(record) + memory(record);
  return throughput(record) + loss_scale(record) + breakdown(record) + memory(record) +
         messages(record);
}

std::string verification_report(const Record& record) {
  std::string text = printed("%-32s %14s %14s\n", "check", "value", "threshold");
  for (const VerifyEntry& entry : record.verify) {
    text += printed("%-32s %14.6g %14.6g  %s\n", entry.name.c_str(), entry.value, entry.threshold,
                    entry.passed ? "PASSED" : "FAILED");
    text += printed("    %s\n", entry.formula.c_str());
  }
  if (!record.kernels_not_verified.empty()) {
    text += "Operations that the reduced model did not exercise:\n";
    for (const std::string& name : record.kernels_not_verified) text += "    " + name + "\n";
  }
  text += rule('-');
  text += printed("Verdict: %s   Status: %s\n", record.verdict.c_str(), record.status.c_str());
  if (!record.reason.empty()) text += record.reason + "\n";
  return text;
}

std::string last_line(const Record& record, const std::string& result_file) {
  const Summary& s = record.summary;
  // A loss that is not finite has no digits (and "-nan" would depend on the C library).
  const std::string loss = std::isfinite(s.final_loss) ? printed("%.6f", s.final_loss) : "none";
  return printed(
      "GPTBENCH status=%s verdict=%s params=%lld ranks=%lld steps=%lld sec_per_it=%.6g "
      "tokens_per_s=%.6g "
      "tflops=%.6g convention=%s mfu=%.4f loss=%s file=%s\n",
      record.status.c_str(), record.verdict.c_str(), static_cast<long long>(s.num_params),
      static_cast<long long>(s.world_size), static_cast<long long>(s.timed_steps), s.sec_per_it,
      s.tokens_per_s, s.model_tflops_per_device, s.flops_convention.c_str(), s.mfu, loss.c_str(),
      result_file.c_str());
}

}  // namespace gptbench
