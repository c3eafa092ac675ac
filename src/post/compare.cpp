#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "post/cells.h"
#include "post/commands.h"
#include "post/noise.h"
#include "post/regions.h"
#include "post/run_view.h"
#include "post/table.h"
#include "record/steps.h"

namespace gptbench {
namespace {

std::string ratio_cell(double a, double b) {
  return a > 0.0 && b > 0.0 ? fixed(b / a, 3) : "-";
}

struct Comparison {
  Table table;
  void add(const std::string& name, double a, double b, int decimals,
           const RatioBounds& bounds = {}) {
    if (a == 0.0 && b == 0.0) return;
    std::string range, verdict;
    if (bounds.known) {
      range = fixed(bounds.least, 3) + " to " + fixed(bounds.largest, 3);
      verdict = bounds.beyond_noise() ? "beyond" : "within";
    }
    const auto cell = [&](double value) { return value == 0.0 ? "-" : fixed(value, decimals, 3); };
    table.rows.push_back({name, cell(a), cell(b), ratio_cell(a, b), range, verdict});
  }
};

// Times of the timed steps of a region on the slowest rank.
std::vector<double> times_of_region(const Record& r, const std::string& name) {
  const int64_t rank = slowest_rank(r).rank;
  for (const RankSeries& series : r.timing) {
    const int64_t column = rank >= 0 ? rank : 2;  // of reductions the maximum
    if (series.name == name && column < series.ranks) return timed_steps(r, series, column);
  }
  return {};
}

RatioBounds inverse(const RatioBounds& bounds) {
  if (!bounds.known) return bounds;
  return {1.0 / bounds.largest, 1.0 / bounds.least, true};
}

std::string figures(const Record& a, const Record& b) {
  Comparison c{{"",
                {{"figure", false},
                 {"A", true},
                 {"B", true},
                 {"B / A", true},
                 {"bounds", true},
                 {"noise", false}},
                {}}};
  const RatioBounds of_time = ratio_bounds(timed_step_times(a), timed_step_times(b));
  // Where both runs do the same work per step a rate follows from the time.
  const auto rate_bounds = [&](double work_a, double work_b) {
    const RatioBounds bounds = inverse(of_time);
    const double work = work_a > 0.0 ? work_b / work_a : 0.0;
    return work > 0.0 ? RatioBounds{bounds.least * work, bounds.largest * work, bounds.known}
                      : RatioBounds{};
  };
  const Summary &of_a = a.summary, &of_b = b.summary;
  c.add("time per step (s)", of_a.sec_per_it, of_b.sec_per_it, 3, of_time);
  c.add("tokens/s", of_a.tokens_per_s, of_b.tokens_per_s, 1,
        rate_bounds(of_a.tokens_per_s * of_a.sec_per_it, of_b.tokens_per_s * of_b.sec_per_it));
  c.add("sequences/s", of_a.samples_per_s, of_b.samples_per_s, 2,
        rate_bounds(of_a.samples_per_s * of_a.sec_per_it, of_b.samples_per_s * of_b.sec_per_it));
  const std::string convention = of_a.flops_convention;
  const double tflops_a = RunView(a).tflops(convention), tflops_b = RunView(b).tflops(convention);
  c.add("model TFLOP/s per device (" + convention + ")", tflops_a, tflops_b, 3,
        rate_bounds(tflops_a * of_a.sec_per_it, tflops_b * of_b.sec_per_it));
  c.add("MFU (%)", 100.0 * of_a.mfu, 100.0 * of_b.mfu, 2);
  c.add("peak memory (MiB)", of_a.peak_memory_bytes / static_cast<double>(MiB),
        of_b.peak_memory_bytes / static_cast<double>(MiB), 1);
  c.add("power per device (W)", of_a.power_w.value_or(0.0), of_b.power_w.value_or(0.0), 1);
  c.add("energy per token (J)", of_a.energy_j_per_token.value_or(0.0),
        of_b.energy_j_per_token.value_or(0.0), 4);
  c.add("final loss", of_a.final_loss, of_b.final_loss, 4);
  for (const RegionTime& region : slowest_rank(a).regions) {
    const std::vector<double> times_a = times_of_region(a, region.name),
                              times_b = times_of_region(b, region.name);
    c.add("  " + region.name + " (s)", median(times_a), median(times_b), 4,
          ratio_bounds(times_a, times_b));
  }
  return format_plain(c.table);
}

// A sentence on what the bounds are based on.
std::string noise(const Record& a, const Record& b) {
  const std::vector<double> times_a = timed_step_times(a), times_b = timed_step_times(b);
  const RatioBounds bounds = ratio_bounds(times_a, times_b);
  if (!bounds.known) return "Noise: not known, since a run has fewer than two timed steps.\n";
  const auto percent = [](const std::vector<double>& times) {
    return fixed(100.0 * median_bounds(times).coverage, 0) + "% of " +
           std::to_string(times.size()) + " steps";
  };
  return std::string("The difference in time per step is ") +
         (bounds.beyond_noise() ? "beyond" : "within") +
         " noise. Bounds of the ratio of medians are from\nthe spread of the timed steps (" +
         percent(times_a) + "; " + percent(times_b) +
         "): runs at other\ntimes may differ by more, so repeat them in turn.\n";
}

std::string loss_difference(const Record& a, const Record& b) {
  const size_t steps = std::min(a.loss.size(), b.loss.size());
  if (steps == 0) return "";
  double largest = 0.0;
  for (size_t i = 0; i < steps; ++i) largest = std::max(largest, std::fabs(a.loss[i] - b.loss[i]));
  return "Loss: largest difference over " + std::to_string(steps) + " common steps " +
         scientific(largest) + ".\n";
}

std::string value_text(const ConfigEntry* entry) {
  if (entry == nullptr) return "-";
  if (const auto* text = std::get_if<std::string>(&entry->value)) return "'" + *text + "'";
  if (const auto* logical = std::get_if<bool>(&entry->value)) return *logical ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&entry->value)) return std::to_string(*number);
  return scientific(std::get<double>(entry->value));
}

std::string differences(const Record& a, const Record& b) {
  Table table{"", {{"differs", false}, {"A", false}, {"B", false}}, {}};
  const auto add = [&](const std::string& name, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) table.rows.push_back({name, of_a, of_b});
  };
  add("status", a.status, b.status);
  add("machine", a.machine, b.machine);
  add("git_commit", a.git_commit, b.git_commit);
  add("world_size", std::to_string(a.summary.world_size), std::to_string(b.summary.world_size));
  add("nodes", std::to_string(a.summary.nodes), std::to_string(b.summary.nodes));
  const auto add_key = [&](const ConfigEntry& entry) {
    const std::string name = entry.group + "." + entry.key;
    if (name == "output.directory") return;  // differs between any two runs
    add(name, value_text(find_entry(a, entry.group, entry.key)),
        value_text(find_entry(b, entry.group, entry.key)));
  };
  for (const ConfigEntry& entry : a.config) add_key(entry);
  for (const ConfigEntry& entry : b.config)
    if (find_entry(a, entry.group, entry.key) == nullptr) add_key(entry);
  return table.rows.empty() ? "Decks, machine and program are the same.\n" : format_plain(table);
}

}  // namespace

std::string compare_page(const std::string& path_a, const Record& a, const std::string& path_b,
                         const Record& b) {
  return "A  " + path_a + "\nB  " + path_b + "\n\n" + figures(a, b) + "\n" + noise(a, b) +
         loss_difference(a, b) + "\n" + differences(a, b);
}

}  // namespace gptbench
