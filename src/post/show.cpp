#include <algorithm>

#include "base/column_unit.h"
#include "base/text.h"
#include "base/units.h"
#include "post/cells.h"
#include "post/commands.h"
#include "post/run_view.h"
#include "post/table.h"
#include "record/flops.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr size_t page_width = 80;

// "  name    value": a long value is continued on lines of its own, broken at blanks where it can
// be.
std::string entry(const std::string& name, const std::string& value) {
  constexpr size_t column = 24;
  if (value.empty()) return "";
  std::string text = "  " + name + std::string(column - 2 - std::min(column - 3, name.size()), ' ');
  for (size_t at = 0; at < value.size();) {
    size_t length = std::min(page_width - column, value.size() - at);
    if (at + length < value.size()) {
      const size_t blank = value.rfind(' ', at + length);
      if (blank != std::string::npos && blank > at) length = blank - at;
    }
    text += (at == 0 ? "" : std::string(column, ' ')) + value.substr(at, length) + "\n";
    at = value.find_first_not_of(' ', at + length);
  }
  return text;
}

std::string about(const std::string& path, const Record& r) {
  const RunView run(r);
  std::string text = entry("file", path);
  text += entry("status", r.outcome.status +
                              (r.outcome.verdict.empty() ? "" : ", " + r.outcome.verdict) +
                              (r.outcome.exit_status > 0
                                   ? " (exit status " + std::to_string(r.outcome.exit_status) + ")"
                                   : ""));
  text += entry("reason", r.outcome.reason);
  text += entry("rules", rules_text(r));
  if (r.outcome.ended_in_step > 0 && !run.counts())
    text += entry("ended at step", std::to_string(r.outcome.ended_in_step));
  text += entry("run", run.deck().text("run", "name"));
  text += entry("date (UTC)", r.date_utc);
  text += entry("machine", r.machine);
  text += entry("software", r.software_version + ", commit " + r.git_commit);
  return text;
}

std::string model(const RunView& run) {
  const auto number = [&](const char* key) {
    return std::to_string(run.deck().integer("model", key, 0));
  };
  std::string text = entry(
      "model", run.model_name() + ", " + format_count(run.summary().num_params) + " parameters");
  text += entry("shape", number("num_layers") + " layers, hidden size " + number("hidden_size") +
                             ", " + number("num_attention_heads") + " heads, sequence " +
                             number("seq_length"));
  text += entry("precision", run.deck().text("precision", "compute") + ", parameters " +
                                 run.deck().text("precision", "parameters") + ", reduced in " +
                                 run.deck().text("precision", "reduce"));
  text += entry("recomputation", run.deck().checkpointing());
  const Summary& s = run.summary();
  text += entry("ranks", std::to_string(s.world_size) + " on " + std::to_string(s.nodes) +
                             (s.nodes == 1 ? " node" : " nodes"));
  text +=
      entry("decomposition", "data " + std::to_string(run.deck().data_parallel()) + ", tensor " +
                                 std::to_string(run.deck().tensor_parallel()) + ", pipeline " +
                                 std::to_string(run.deck().pipeline_parallel()) + ", context " +
                                 std::to_string(run.deck().context_parallel()) + ", ZeRO " +
                                 std::to_string(run.deck().zero_stage()));
  text += entry("batch",
                std::to_string(run.deck().global_batch()) +
                    " sequences: " + std::to_string(run.deck().gradient_accumulation()) +
                    (run.deck().gradient_accumulation() == 1 ? " micro-batch" : " micro-batches") +
                    " of " + std::to_string(run.deck().micro_batch()) + " per replica");
  return text;
}

std::string rates(const RunView& run) {
  const Summary& s = run.summary();
  const RateFigures& rate = s.rate;
  const FlopsFigures& flops = s.flops;
  if (rate.sec_per_it <= 0.0) return entry("throughput", "no step was timed");
  std::string text = entry("time per step", format_seconds(rate.sec_per_it) +
                                                (run.is_projected() ? " (" : " (median; ") +
                                                run.step_range_text() + ")");
  if (rate.drift_percent) text += entry("drift", drift_text(s));
  const double devices = static_cast<double>(std::max<int64_t>(1, s.world_size));
  text += entry("throughput", fixed(rate.tokens_per_s, 1, 4) + " tokens/s, " +
                                  fixed(rate.tokens_per_s / devices, 1, 4) + " per device, " +
                                  fixed(rate.samples_per_s, 2, 3) + " sequences/s");
  const auto tflops = [](double value) { return fixed(value, 3, 4); };
  if (!s.rules.outcome.empty() && flops.fom_tflops > 0.0)
    text += entry("figure of merit", tflops(flops.fom_tflops) + " TFLOP/s in total (causal)");
  text += entry("model TFLOP/s", tflops(flops.model_tflops_per_device * devices) + " in total, " +
                                     tflops(flops.model_tflops_per_device) + " per device (" +
                                     flops.convention + "), with recomputation " +
                                     tflops(flops.hardware_tflops_per_device));
  const std::string warning = impossible_utilisation(flops.mfu, flops.hfu, flops.convention);
  if (flops.mfu <= 0.0)
    text += entry("utilisation", "no MFU: " + reason_without_mfu(s));
  else
    text += entry("utilisation", "MFU " + fixed(100.0 * flops.mfu, 2) + " %, HFU " +
                                     fixed(100.0 * flops.hfu, 2) + " % of " +
                                     fixed(s.peak.tflops, 3) + " TFLOP/s (" + s.peak.source +
                                     (s.peak.note.empty() ? "" : "; " + s.peak.note) + ")" +
                                     (warning.empty() ? "" : "; " + warning));
  std::string others;
  for (const auto& convention : flops.per_step)
    if (convention.first != flops.convention && is_convention(convention.first))
      others += (others.empty() ? "" : ", ") + convention.first + " " +
                fixed(run.rates().tflops(convention.first), 3);
  text += entry("other conventions", others);
  if (fp8_share(s) > 0.0)
    text += entry("in fp8", fixed(100.0 * fp8_share(s), 1) + " % of the FLOPs executed");
  return text;
}

std::string losses(const RunView& run) {
  const Summary& s = run.summary();
  std::string text;
  const std::string at_first = " at step " + std::to_string(s.resumed.steps + 1) + ", ";
  if (!run.record().steps.loss.empty())
    text += entry("loss", fixed(run.record().steps.loss.front(), 4) + at_first +
                              fixed(run.record().steps.loss.back(), 4) + " at the last");
  if (const std::string held_out = run.held_out_text(); !held_out.empty())
    text += entry("held-out loss", held_out);
  if (!run.record().steps.loss_scale.empty())
    text += entry("loss scale", fixed(run.record().steps.loss_scale.front(), 0) + at_first +
                                    fixed(run.record().steps.loss_scale.back(), 0) +
                                    " at the last, steps skipped: " +
                                    std::to_string(run.record().summary.skipped_steps));
  return text;
}

std::string checkpoints(const Record& r) {
  const Summary& s = r.summary;
  const CheckpointCost cost = checkpoint_cost(r);
  std::string text;
  if (s.checkpoint.write_s > 0.0) {
    text += entry("checkpoints", format_bytes(s.checkpoint.bytes) + " each, written in " +
                                     format_seconds(s.checkpoint.write_s) + ": " +
                                     fixed(1e-9 * cost.node_bytes_per_s, 3, 3) + " GB/s per node");
    text +=
        entry("stall", stall_text(cost) + "; overhead " + fixed(100.0 * cost.overhead, 2) + " %");
  }
  if (s.resumed.load_s > 0.0)
    text += entry(s.resumed.from.empty() ? "weights loaded in" : "time to resume",
                  format_seconds(s.resumed.load_s));
  return text;
}

// Figures that the machine offers, then where they come from and why others are absent.
std::string sensors(const Summary& s) {
  const DeviceFigures& device = s.device;
  std::string text;
  if (device.power_w)
    text +=
        entry("power per device",
              fixed(*device.power_w, 1) + " W" +
                  (device.power_limit_w ? " of " + fixed(*device.power_limit_w, 0) + " W" : ""));
  if (s.host.power_w) text += entry("power per node", fixed(*s.host.power_w, 1) + " W");
  if (device.energy_j_per_token)
    text += entry("energy per token", fixed(*device.energy_j_per_token, 3, 3) + " J");
  if (device.utilisation)
    text += entry("utilisation", fixed(100.0 * *device.utilisation, 1) + " %");
  if (device.temperature_c)
    text += entry("temperature", fixed(*device.temperature_c, 0) + " degC at most");
  if (device.errors_uncorrected)
    text += entry("errors of memory",
                  printed("%.0f corrected, %.0f not", device.errors_corrected.value_or(0.0),
                          *device.errors_uncorrected));
  if (device.clock_ghz > 0.0) text += entry("clock", fixed(device.clock_ghz, 2) + " GHz");
  if (s.host.clock_ghz > 0.0 && s.host.clock_ghz != device.clock_ghz)
    text += entry("clock of the host", fixed(s.host.clock_ghz, 2) + " GHz");
  if (s.host.memory_used_bytes > 0.0)
    text += entry("memory of a node", format_bytes(static_cast<int64_t>(s.host.memory_used_bytes)) +
                                          " used of " +
                                          format_bytes(static_cast<int64_t>(s.host.memory_bytes)));
  for (const std::string& line : split(s.sensors_note, '\n')) {
    const size_t colon = line.find(": ");
    const bool named = colon != std::string::npos && colon < 22;
    text += entry(named ? "  " + line.substr(0, colon) : "", named ? line.substr(colon + 2) : line);
  }
  return text.empty() ? "" : page_heading("sensors") + text;
}

std::string bytes_of_ranks(const std::string& heading, const char* kind,
                           const std::vector<MemoryEntry>& entries) {
  Table table{
      "", {{"", false}, {kind, false}, {"least", true}, {"largest", true}, {"of rank", true}}, {}};
  int64_t most = 0;
  for (const MemoryEntry& m : entries)
    for (const int64_t bytes : m.bytes) most = std::max(most, bytes);
  const ColumnUnit unit = bytes_unit(most);
  for (const MemoryEntry& m : entries) {
    if (m.bytes.empty()) continue;
    const auto largest = std::max_element(m.bytes.begin(), m.bytes.end());
    table.rows.push_back(
        {"", m.name + (m.reduced ? " (sum over ranks)" : ""),
         m.reduced ? "" : unit.text(*std::min_element(m.bytes.begin(), m.bytes.end())),
         unit.text(*largest), m.bytes.size() < 2 ? "" : std::to_string(largest - m.bytes.begin())});
  }
  return table.rows.empty() ? "" : page_heading(heading) + format_plain(table);
}

std::string breakdown(const Record& r) {
  const Breakdown slowest = slowest_rank(r);
  if (slowest.regions.empty()) return "";
  Table table{"", {{"", false}, {"region", false}, {"per step", true}, {"share", true}}, {}};
  // Parts of the line above them: the others add up to a step.
  const auto is_part = [](const std::string& name) {
    return name == "bubble" || name == "straggler";
  };
  double longest_s = 0.0;
  for (const RegionTime& region : slowest.regions) longest_s = std::max(longest_s, region.time_s);
  const ColumnUnit unit = seconds_unit(longest_s);
  for (const RegionTime& region : slowest.regions)
    table.rows.push_back(
        {"", (is_part(region.name) ? "  of it " : "") + region.name, unit.text(region.time_s),
         slowest.step_s > 0.0 ? fixed(100.0 * region.time_s / slowest.step_s, 1) + " %" : "-"});
  return page_heading(!r.projection.machine.empty() ? "time of the stage that computes longest"
                      : slowest.rank >= 0
                          ? "time of the slowest rank, " + std::to_string(slowest.rank)
                          : std::string("time, maximum over ranks")) +
         format_plain(table);
}

std::string communication(const Record& r) {
  Table table{"",
              {{"", false},
               {"axis", false},
               {"operation", false},
               {"calls", true},
               {"payload", true},
               {"time (s)", true},
               {"exposed (s)", true}},
              {}};
  const auto largest = [](const auto& values) {
    return values.empty() ? 0.0
                          : static_cast<double>(*std::max_element(values.begin(), values.end()));
  };
  double most = 0.0;
  for (const CommEntry& c : r.comm) most = std::max(most, largest(c.bytes));
  const ColumnUnit unit = bytes_unit(static_cast<int64_t>(most));
  for (const CommEntry& c : r.comm) {
    table.rows.push_back({"", c.axis, c.op, format_count(static_cast<int64_t>(largest(c.count))),
                          unit.text(largest(c.bytes)), fixed(largest(c.time_s), 3),
                          c.exposed_s.empty() ? "-" : fixed(largest(c.exposed_s), 3)});
  }
  if (table.rows.empty()) return "";
  const bool summed = r.comm.front().reduced;
  return page_heading(std::string("communication of the steps after the warm-up, ") +
                      (summed ? "sum over ranks" : "largest over ranks")) +
         format_plain(table);
}

std::string verification(const Record& r) {
  Table table{
      "", {{"", false}, {"check", false}, {"value", true}, {"threshold", true}, {"", false}}, {}};
  for (const VerifyEntry& v : r.verify)
    table.rows.push_back({"", v.name, three_digits(v.value), three_digits(v.threshold),
                          v.passed ? "PASSED" : "FAILED"});
  if (table.rows.empty()) return "";
  std::string text = page_heading("verification") + format_plain(table);
  std::string kernels;
  for (const std::string& kernel : r.kernels_not_verified)
    kernels += (kernels.empty() ? "" : ", ") + kernel;
  return text + entry("not verified", kernels);
}

}  // namespace

std::string show_page(const std::string& path, const Record& record) {
  const RunView run(record);
  return page_heading("gptbench result") + about(path, record) + page_heading("run") + model(run) +
         rates(run) + losses(run) + checkpoints(record) + sensors(record.summary) +
         bytes_of_ranks(
             run.is_projected() ? "memory of the device with the highest need" : "memory per rank",
             "class", record.memory) +
         bytes_of_ranks("offloaded data moved per rank, all steps", "transfer", record.offload) +
         breakdown(record) + communication(record) + verification(record);
}

}  // namespace gptbench
