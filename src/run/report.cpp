#include "run/report.h"

#include <algorithm>
#include <cmath>

#include "base/column_unit.h"
#include "base/flops_convention.h"
#include "base/like_seconds.h"
#include "base/text.h"
#include "base/units.h"
#include "record/flops.h"
#include "record/regions.h"
#include "record/steps.h"
#include "run/console.h"
#include "run/progress.h"

namespace gptbench {
namespace {

std::string timed_steps(int64_t number) {
  return std::to_string(number) + (number == 1 ? " timed step" : " timed steps");
}

// In the unit of the median.
std::string range_of_steps(const RateFigures& rate) {
  return format_seconds_like(rate.sec_per_it_min, rate.sec_per_it) + " to " +
         format_seconds_like(rate.sec_per_it_max, rate.sec_per_it);
}

std::string breakdown(const Record& record) {
  const Breakdown times = slowest_rank(record);
  if (times.regions.empty() || record.summary.timed_steps == 0) return "";
  const std::string rank = times.rank < 0 ? "" : " (" + std::to_string(times.rank) + ")";
  std::string text = "Time of the slowest rank" + rank + ", mean of " +
                     timed_steps(record.summary.timed_steps) + "\n";
  // A step is its programs, and again its regions with communication.
  std::string programs, regions;
  double longest_s = 0.0;
  for (const RegionTime& part : times.regions) longest_s = std::max(longest_s, part.time_s);
  const ColumnUnit unit = seconds_unit(longest_s);
  for (const RegionTime& part : times.regions) {
    const bool is_program = part.name.rfind(region_prefix, 0) != 0 && part.name != "communication";
    (is_program ? programs : regions) +=
        printed("  %-28s %10s  %5.1f %%\n", part.name.c_str(), unit.text(part.time_s).c_str(),
                100.0 * part.time_s / times.step_s);
  }
  return text + programs + (regions.empty() ? "" : " the same by kind of work\n" + regions);
}

std::string throughput(const Record& record) {
  const Summary& s = record.summary;
  const RateFigures& rate = s.rate;
  std::string text;
  text += printed("%-28s %12s  (%s, %lld timed)\n", "Time per step, median",
                  format_seconds(rate.sec_per_it).c_str(), range_of_steps(rate).c_str(),
                  static_cast<long long>(s.timed_steps));
  text += printed("%-28s %12.1f tokens/s, %.4g sequences/s\n", "Throughput", rate.tokens_per_s,
                  rate.samples_per_s);
  text += "Model TFLOP/s per rank, by FLOPs convention\n";
  for (const auto& entry : s.flops.per_step) {
    const std::string& convention = entry.first;
    if (!is_convention(convention)) continue;
    text += printed(
        "  %-26s %12.4f%s\n", convention.c_str(),
        model_flops(s, convention) / rate.sec_per_it / 1e12 / static_cast<double>(s.world_size),
        convention == s.flops.convention ? "  (the deck's convention)" : "");
  }
  if (fp8_share(s) > 0.0)
    text += printed("%-28s %11.1f %% of the FLOPs executed\n", "In fp8", 100.0 * fp8_share(s));
  if (s.peak.tflops > 0.0)
    text += printed("%-28s %12.4f TFLOP/s (%s)\n", "Peak per rank", s.peak.tflops,
                    s.peak.source.c_str());
  if (!s.peak.note.empty()) text += hanging("  ", s.peak.note);
  return text;
}

// Whether the run has rates. The speed of a wrong computation is no result; that of one that was
// not verified is given beside a verdict that says so.
bool is_quotable(const Record& record) {
  return record.summary.timed_steps > 0 && record.outcome.verdict != "INVALID" &&
         record.outcome.status != "FAILED";
}

// What the box offers to quote: the figure of merit of a problem class, else the deck's convention.
struct Quoted {
  std::string convention;
  double tflops_per_device = 0.0, mfu = 0.0, hfu = 0.0;
};

Quoted quoted(const Summary& s) {
  const FlopsFigures& flops = s.flops;
  if (s.rules.outcome.empty())
    return {flops.convention, flops.model_tflops_per_device, flops.mfu, flops.hfu};
  Quoted q;
  q.convention = name_of(FlopsConvention::causal);
  q.tflops_per_device = flops.fom_tflops / static_cast<double>(s.world_size);
  if (flops.mfu <= 0.0) return q;  // the peak is not known, or varies
  q.mfu = q.tflops_per_device / s.peak.tflops;
  q.hfu = q.mfu * (hardware_flops(s, q.convention) / model_flops(s, q.convention));
  return q;
}

constexpr size_t name_columns = 16, page_columns = 80;  // of the box and the lines above it

std::string entry(std::string name, const std::string& text) {
  name.resize(name_columns, ' ');
  return hanging(name, text);
}

// A reason that fits a line of the box: where it is longer, its first clause and what has the rest.
std::string in_one_line(const std::string& before, const std::string& reason) {
  const size_t room = page_columns - name_columns - before.size();
  if (reason.size() <= room) return before + reason;
  const std::string rest = " (gptpost show)";
  size_t end = std::min({reason.find("; "), reason.find(" ("), reason.find(": "), reason.size()});
  if (end + rest.size() > room) end = reason.rfind(' ', room - rest.size());
  return before + reason.substr(0, end) + rest;
}

// MFU with its peak, or why there is none.
std::string utilisation(const Quoted& q, const Summary& summary) {
  const Peak& peak = summary.peak;
  if (q.mfu <= 0.0) return in_one_line("none: ", reason_without_mfu(summary));
  std::string text = printed("%.1f %% of %s per rank (%s)", 100.0 * q.mfu,
                             format_si(peak.tflops * 1e12, "FLOP/s").c_str(), peak.source.c_str());
  if (q.hfu != q.mfu) text += printed(", HFU %.1f %%", 100.0 * q.hfu);
  if (peak.source == peak_source::known_device && !peak.note.empty()) text += "; " + peak.note;
  const std::string warning = impossible_utilisation(q.mfu, q.hfu, q.convention);
  return text + (warning.empty() ? "" : "; " + warning);
}

int64_t line_count(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

// The first `max_lines` lines of a text, the last of them `rest` where there are more.
std::string cut(const std::string& text, int64_t max_lines, const std::string& rest) {
  if (line_count(text) <= max_lines) return text;
  size_t end = 0;
  for (int64_t line = 1; line < max_lines; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end) + std::string(name_columns, ' ') + "... " + rest + "\n";
}

// Broken rules that the deck has are in the warning before the first step, too.
constexpr int64_t max_rules_lines = 2;
// The entry MFU: with HFU, a note on the peak and a warning.
constexpr int64_t max_utilisation_lines = 3;

// In one line, but for errors of memory.
std::string drift(const Summary& s) {
  std::string text = printed("step rate %+.2f %%", *s.rate.drift_percent);
  if (s.rate.drift_percent_per_hour)
    text += printed(", %+.2f %% per hour", *s.rate.drift_percent_per_hour);
  if (s.device.temperature_c) text += printed("; up to %.0f degC", *s.device.temperature_c);
  if (s.device.errors_corrected)
    text += printed("; %.0f errors of memory corrected", *s.device.errors_corrected);
  return text;
}

// The last held-out loss, and when the target was reached.
std::string convergence(const Record& record) {
  const ConvergenceFigures& losses = record.summary.convergence;
  std::string text = printed("%.4f after step %lld", *losses.held_out_loss,
                             static_cast<long long>(record.steps.held_out_step.back()));
  if (losses.steps_to_target > 0)
    text += printed(", target reached with %lld tokens",
                    static_cast<long long>(losses.tokens_to_target));
  else if (const double target = key_value<double>(record, "convergence", "target_loss");
           target > 0.0)
    text += printed(", target %g not reached", target);
  if (losses.time_to_target_s > 0.0)
    text += " in " + format_seconds(losses.time_to_target_s) + " of steps";
  return text + "; evaluated in " + format_seconds(losses.evaluation_s) + ", not part of any step";
}

std::string check_line(const VerifyEntry& entry) {
  return printed("%-32s %14.6g %14.6g  %s\n", entry.name.c_str(), entry.value, entry.threshold,
                 entry.passed ? "PASSED" : "FAILED");
}

std::string loss_scale(const Record& record) {
  if (record.steps.loss_scale.empty()) return "";
  return printed("%-28s %12g in the last step; %lld of %lld steps skipped and not timed\n",
                 "Loss scale", record.steps.loss_scale.back(),
                 static_cast<long long>(record.summary.skipped_steps),
                 static_cast<long long>(record.steps.loss_scale.size()));
}

std::string bytes_of_ranks(const char* heading, const std::vector<MemoryEntry>& entries) {
  std::string text = entries.empty() ? "" : std::string(heading) + ", largest over ranks\n";
  const auto largest = [](const MemoryEntry& entry) {
    return entry.bytes.empty() ? 0 : *std::max_element(entry.bytes.begin(), entry.bytes.end());
  };
  int64_t most = 0;
  for (const MemoryEntry& entry : entries) most = std::max(most, largest(entry));
  const ColumnUnit unit = bytes_unit(most);
  for (const MemoryEntry& entry : entries)
    if (!entry.bytes.empty())
      text += printed("  %-28s %12s\n", entry.name.c_str(), unit.text(largest(entry)).c_str());
  return text;
}

std::string memory(const Record& record) {
  return bytes_of_ranks("Memory", record.memory) +
         bytes_of_ranks("Offloaded data moved in all steps", record.offload);
}

std::string messages(const Record& record) {
  if (record.comm.empty()) return "";
  std::string text =
      "Messages per rank, after warm-up    calls       payload      total    exposed\n";
  const auto rank_exposed_longest = [](const CommEntry& entry) {
    return static_cast<size_t>(std::max_element(entry.exposed_s.begin(), entry.exposed_s.end()) -
                               entry.exposed_s.begin());
  };
  int64_t most_bytes = 0;
  double longest_s = 0.0, longest_exposed_s = 0.0;
  for (const CommEntry& entry : record.comm) {
    const size_t r = rank_exposed_longest(entry);
    most_bytes = std::max(most_bytes, entry.bytes[r]);
    longest_s = std::max(longest_s, entry.time_s[r]);
    longest_exposed_s = std::max(longest_exposed_s, entry.exposed_s[r]);
  }
  const ColumnUnit payload = bytes_unit(most_bytes), total = seconds_unit(longest_s),
                   exposed = seconds_unit(longest_exposed_s);
  for (const CommEntry& entry : record.comm) {
    const size_t r = rank_exposed_longest(entry);
    text += printed("  %-28s %10lld  %12s %10s %10s\n", (entry.axis + " " + entry.op).c_str(),
                    static_cast<long long>(entry.count[r]), payload.text(entry.bytes[r]).c_str(),
                    total.text(entry.time_s[r]).c_str(), exposed.text(entry.exposed_s[r]).c_str());
  }
  return text;
}

// Time of one checkpoint, and the cost of all to training.
std::string checkpoints(const Record& record) {
  const CheckpointCost cost = checkpoint_cost(record);
  return format_bytes(record.summary.checkpoint.bytes) + " each, written in " +
         format_seconds(record.summary.checkpoint.write_s) + " (" +
         format_si(cost.node_bytes_per_s, "B/s") + " per node); training waited " +
         format_seconds(cost.stall_s) +
         printed(" per step, %.1f %% of its time", 100.0 * cost.overhead);
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

int64_t room_for_deck_and_plan(const Config& config, const ReportAhead& ahead,
                               const std::string& before) {
  constexpr int64_t max_lines = 60;
  // Heading of the steps, two of the shares of the time, checks, the box with six lines, the last
  // line.
  int64_t lines = 13 + line_count(before);
  lines += Progress::max_lines(Progress::length_of(config, 0));
  if (ahead.has_earlier_result) lines += 1;
  const bool has_hfu = config.memory.activation_checkpointing != Recompute::none;
  if (config.output.peak_tflops == 0.0 && (has_hfu || ahead.has_data_sheet)) lines += 1;
  if (config.convergence.evaluate_every > 0) lines += 2;
  if (config.run.verify) lines += 1;
  if (!config.run.problem_class.empty()) lines += max_rules_lines;
  if (!config.checkpoint.directory.empty()) lines += 2;
  const std::string& resume = config.run.start.resume;
  if (resume == "auto" ? ahead.has_checkpoint : resume != "no")
    lines += 3;
  else if (!config.run.start.init_from.empty())
    lines += 1;
  if (config.output.trace_step > 0) lines += 1;
  if (config.precision.compute == Precision::fp16) lines += 1;  // a skipped step
  return max_lines - lines;
}

std::string deck_and_plan(const Deck& deck, const std::string& plan, int64_t room) {
  constexpr int64_t min_key_lines = 6, min_plan_lines = 4, rules = 2;
  const std::string keys = keys_that_were_set(
      deck, static_cast<size_t>(std::max(min_key_lines, room - line_count(plan) - rules)));
  return keys + rule('-') +
         cut(plan, std::max(min_plan_lines, room - line_count(keys) - rules),
             "--verbose prints all") +
         rule('-');
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
    text += check_line(entry);
    text += hanging("    ", entry.formula);
  }
  if (!record.kernels_not_verified.empty()) {
    text += "Operations that the reduced model did not exercise:\n";
    for (const std::string& name : record.kernels_not_verified) text += "    " + name + "\n";
  }
  text += rule('-');
  const RunOutcome& outcome = record.outcome;
  text += printed("Verdict: %s   Status: %s\n", outcome.verdict.c_str(), outcome.status.c_str());
  if (!outcome.reason.empty()) text += outcome.reason + "\n";
  return text;
}

std::string time_shares(const Record& record) {
  const Breakdown times = slowest_rank(record);
  if (times.regions.empty() || record.summary.timed_steps == 0) return "";
  std::vector<std::string> parts;
  std::string messages;
  for (const RegionTime& part : times.regions) {
    const std::string share =
        printed("%s %.1f %%", part.name.c_str(), 100.0 * part.time_s / times.step_s);
    if (part.name == "communication") messages = "; of that, " + share;
    if (part.name == "forward" || part.name == "backward" || part.name == "optimizer")
      parts.push_back(share);
  }
  return hanging("Time            ", join(parts, ", ") + messages);
}

std::string checks_in_brief(const Record& record) {
  size_t passed = 0;
  std::string failed;
  for (const VerifyEntry& entry : record.verify) {
    passed += entry.passed ? 1 : 0;
    if (!entry.passed) failed += check_line(entry);
  }
  if (record.verify.empty()) return "";
  return printed("Checks          %zu of %zu passed\n", passed, record.verify.size()) + failed;
}

std::string remarks(const Record& record) {
  const Summary& s = record.summary;
  std::string text;
  const RateFigures& rate = s.rate;
  if (rate.drift_percent && rate.sec_per_it * static_cast<double>(s.timed_steps) >= burn_in_s)
    text += entry("Drift", drift(s));
  if (!s.rules.outcome.empty())
    text += cut(entry("Rules", rules_text(record)), max_rules_lines, "gptpost show names all");
  if (!s.resumed.from.empty())
    text +=
        entry("Resumed", printed("after step %lld of ", static_cast<long long>(s.resumed.steps)) +
                             s.resumed.from + ", loaded in " + format_seconds(s.resumed.load_s));
  if (s.convergence.held_out_loss) text += entry("Held-out loss", convergence(record));
  if (s.checkpoint.write_s > 0.0) text += entry("Checkpoints", checkpoints(record));
  return text;
}

std::string headline(const Record& record, const std::string& result_file) {
  const Summary& s = record.summary;
  const RateFigures& rate = s.rate;
  const bool timed = s.timed_steps > 0;
  std::string text = rule('=');
  const std::string steps = timed_steps(s.timed_steps) + ", " + format_seconds(rate.sec_per_it) +
                            " per step (" + range_of_steps(rate) + ")";
  const std::string& verdict = record.outcome.verdict;
  text += tinted(verdict, verdict == "VALID") +
          std::string(verdict.size() < name_columns ? name_columns - verdict.size() : 1, ' ') +
          (timed ? steps : "no step was timed") + "\n";
  if (timed && !is_quotable(record)) {
    text += entry("Total", "none: no figure of a run that is INVALID or FAILED may be quoted");
  } else if (timed) {
    const double ranks = static_cast<double>(s.world_size);
    const Quoted q = quoted(s);
    text += entry(
        "Total",
        format_si(q.tflops_per_device * ranks * 1e12, "FLOP/s") + " (" + q.convention + "), " +
            printed("%.1f tokens/s, %.4g sequences/s", rate.tokens_per_s, rate.samples_per_s));
    text += entry("Per rank", format_si(q.tflops_per_device * 1e12, "FLOP/s") + ", " +
                                  printed("%.1f tokens/s", rate.tokens_per_s / ranks));
    text += cut(entry("MFU", utilisation(q, s)), max_utilisation_lines, "gptpost show has more");
  }
  if (s.memory_used_bytes() > 0.0)
    text += entry("Memory", format_bytes(static_cast<int64_t>(s.memory_used_bytes())) +
                                " on the rank with the highest peak");
  text += entry("Result", result_file);
  if (!record.outcome.reason.empty())
    text += hanging(record.outcome.status + ": ", record.outcome.reason);
  return text + rule('=');
}

std::string last_line(const Record& record, const std::string& result_file) {
  const Summary& s = record.summary;
  const RateFigures& rate = s.rate;
  const FlopsFigures& flops = s.flops;
  const auto figure = [&](const char* format, double value, bool has_value) {
    return has_value ? printed(format, value) : std::string("none");
  };
  const bool known = is_quotable(record);
  const std::string type = key_value<bool>(record, "precision", "tf32")
                               ? "tf32"
                               : key_text(record, "precision", "compute");
  std::string verdict = record.outcome.verdict;
  std::replace(verdict.begin(), verdict.end(), ' ', '_');
  return printed("GPTBENCH status=%s verdict=%s params=%lld ranks=%lld steps=%lld",
                 record.outcome.status.c_str(), verdict.c_str(),
                 static_cast<long long>(s.num_params), static_cast<long long>(s.world_size),
                 static_cast<long long>(s.timed_steps)) +
         " sec_per_it=" + figure("%.6g", rate.sec_per_it, known) +
         " tokens_per_s=" + figure("%.6g", rate.tokens_per_s, known) +
         " tflops=" + figure("%.6g", flops.model_tflops_per_device, known) + " total_tflops=" +
         figure("%.6g", flops.model_tflops_per_device * static_cast<double>(s.world_size), known) +
         " convention=" + flops.convention + (type.empty() ? "" : " precision=" + type) +
         " mfu=" + figure("%.4f", flops.mfu, known && flops.mfu > 0.0) +
         (known ? utilisation_key(flops.mfu, flops.hfu) : "") +
         // A loss that is not finite has no digits ("-nan" would depend on the C library).
         " loss=" +
         figure("%.6f", s.convergence.final_loss,
                !record.steps.loss.empty() && std::isfinite(s.convergence.final_loss)) +
         (s.rules.outcome.empty() ? ""
                                  : " class=" + key_text(record, "run", "class") +
                                        " tier=" + key_text(record, "run", "tier") +
                                        " rules=" + (s.rules.outcome == "met" ? "met" : "not_met") +
                                        " fom_tflops=" + figure("%.6g", flops.fom_tflops, known)) +
         " file=" + result_file + "\n";
}

}  // namespace gptbench
