#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "post/cells.h"
#include "post/commands.h"
#include "post/regions.h"
#include "post/run_view.h"
#include "post/table.h"

namespace gptbench {
namespace {

struct Range {
  double least = 0.0, largest = 0.0;
  bool known = false;
};

// Times of the timed steps, warm-up left out.
Range range_of_steps(const Record& r) {
  const auto first = static_cast<size_t>(std::max<int64_t>(0, r.warmup_steps));
  if (r.step_time_s.size() < first + 2) return {};
  const auto [least, largest] = std::minmax_element(
      r.step_time_s.begin() + static_cast<std::ptrdiff_t>(first), r.step_time_s.end());
  return {*least, *largest, *least > 0.0};
}

std::string ratio_cell(double a, double b) {
  return a > 0.0 && b > 0.0 ? fixed(b / a, 3) : "-";
}

struct Comparison {
  Table table;
  void add(const std::string& name, double a, double b, int decimals) {
    if (a == 0.0 && b == 0.0) return;
    table.rows.push_back({name, fixed(a, decimals, 3), fixed(b, decimals, 3), ratio_cell(a, b)});
  }
};

double time_of_region(const Record& r, const std::string& name) {
  for (const RegionTime& region : slowest_rank(r).regions)
    if (region.name == name) return region.time_s;
  return 0.0;
}

std::string figures(const Record& a, const Record& b) {
  Comparison c{{"", {{"figure", false}, {"A", true}, {"B", true}, {"B / A", true}}, {}}};
  c.add("time a step (s)", a.summary.sec_per_it, b.summary.sec_per_it, 3);
  c.add("tokens/s", a.summary.tokens_per_s, b.summary.tokens_per_s, 1);
  c.add("sequences/s", a.summary.samples_per_s, b.summary.samples_per_s, 2);
  const std::string convention = a.summary.flops_convention;
  c.add("model TFLOP/s a device (" + convention + ")", RunView(a).tflops(convention),
        RunView(b).tflops(convention), 3);
  c.add("MFU (%)", 100.0 * a.summary.mfu, 100.0 * b.summary.mfu, 2);
  c.add("peak memory (MiB)", a.summary.peak_memory_bytes / static_cast<double>(MiB),
        b.summary.peak_memory_bytes / static_cast<double>(MiB), 1);
  c.add("final loss", a.summary.final_loss, b.summary.final_loss, 4);
  for (const RegionTime& region : slowest_rank(a).regions)
    c.add("  " + region.name + " (s)", region.time_s, time_of_region(b, region.name), 4);
  return format_plain(c.table);
}

// Any step of one run over any step of the other lies within these bounds: a ratio of medians is
// more than noise where the bounds do not hold 1.
std::string noise(const Record& a, const Record& b) {
  const Range of_a = range_of_steps(a), of_b = range_of_steps(b);
  if (!of_a.known || !of_b.known)
    return "Noise: not known, since a run has fewer than two timed steps.\n";
  const double least = of_b.least / of_a.largest, largest = of_b.largest / of_a.least;
  const bool beyond = least > 1.0 || largest < 1.0;
  return "Noise: single steps give ratios of time from " + fixed(least, 3) + " to " +
         fixed(largest, 3) + "; the difference is " + (beyond ? "beyond" : "within") +
         " the spread over steps.\n";
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

const ConfigEntry* find(const Record& r, const ConfigEntry& like) {
  for (const ConfigEntry& entry : r.config)
    if (entry.group == like.group && entry.key == like.key) return &entry;
  return nullptr;
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
  for (const ConfigEntry& entry : a.config)
    if (entry.group + "." + entry.key != "output.directory")  // differs between any two runs
      add(entry.group + "." + entry.key, value_text(&entry), value_text(find(b, entry)));
  for (const ConfigEntry& entry : b.config)
    if (find(a, entry) == nullptr) add(entry.group + "." + entry.key, "-", value_text(&entry));
  return table.rows.empty() ? "Decks, machine and program are the same.\n" : format_plain(table);
}

}  // namespace

std::string compare_page(const std::string& path_a, const Record& a, const std::string& path_b,
                         const Record& b) {
  return "A  " + path_a + "\nB  " + path_b + "\n\n" + figures(a, b) + "\n" + noise(a, b) +
         loss_difference(a, b) + "\n" + differences(a, b);
}

}  // namespace gptbench
