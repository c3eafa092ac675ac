// Plots of stacked bars: memory by class, time by region.
#include <algorithm>
#include <functional>

#include "base/units.h"
#include "post/plot.h"
#include "post/plot_text.h"
#include "post/regions.h"

namespace gptbench {
namespace {

// A label in a data file stands in double quotes, which it must not hold.
std::string label(std::string text) {
  text = one_line(text);
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\\', '/');
  return "\"" + text + "\"";
}

// One bar: named parts from below.
using Bar = std::vector<std::pair<std::string, double>>;

// Label rotated by 40 degrees: pixels that each character takes downwards, and to the left in
// widths of a character.
constexpr int label_height = 6;
constexpr double label_width = 0.72;

struct Unit {
  const char* name;
  double size;  // in the unit of the bars
};

double height_of(const Bar& bar) {
  double sum = 0.0;
  for (const auto& part : bar) sum += part.second;
  return sum;
}

// Place of a part in the stack: parts named in `order` come first, "other" last.
size_t place_of(const std::string& part, const std::vector<std::string>& order) {
  if (part == "other") return order.size() + 1;
  return static_cast<size_t>(std::find(order.begin(), order.end(), part) - order.begin());
}

// Names of the parts that are not zero in all bars, in the order of the stack.
std::vector<std::string> parts_of(const std::vector<Bar>& bars,
                                  const std::vector<std::string>& order) {
  std::vector<std::string> parts;
  for (const Bar& bar : bars)
    for (const auto& [part, value] : bar)
      if (value > 0.0 && std::find(parts.begin(), parts.end(), part) == parts.end())
        parts.push_back(part);
  std::stable_sort(parts.begin(), parts.end(), [&](const std::string& x, const std::string& y) {
    return place_of(x, order) < place_of(y, order);
  });
  return parts;
}

std::string row_of(const Bar& bar, const std::vector<std::string>& parts, double unit) {
  std::string row;
  for (const std::string& part : parts) {
    double value = 0.0;
    for (const auto& each : bar)
      if (each.first == part) value = each.second;
    row += "\t" + plot_number(value / unit);
  }
  return row + "\n";
}

// Plots column 2 and on of the data, one colour each.
std::string plot_command(const std::vector<std::string>& parts,
                         const std::vector<std::string>& order) {
  std::string command = "plot";
  size_t next_colour = order.size();  // a part named in `order` has the same one in every plot
  for (size_t p = 0; p < parts.size(); ++p) {
    const size_t place = place_of(parts[p], order);
    const size_t colour = place < order.size() ? place : next_colour++;
    std::string title = parts[p];
    std::replace(title.begin(), title.end(), '_', ' ');
    command += (p == 0 ? " data every ::1 using " : ", \\\n  data every ::1 using ") +
               std::to_string(p + 2) + (p == 0 ? ":xtic(1)" : "") + " lt " +
               std::to_string(colour % num_linetypes + 1) + " lw 1 title " + quoted(title);
  }
  return command + "\n";
}

// A table with one row per run and one column for each part, drawn as stacked bars in the largest
// of `units` (ascending) of which the highest bar holds one. Runs with an empty bar are left out.
Plot bar_plot(const std::string& name, const std::string& y_label, const std::vector<Unit>& units,
              const std::vector<std::string>& order, const Runs& runs,
              const std::function<Bar(const RunView&)>& bar_of) {
  std::vector<Bar> bars;
  double highest = 0.0;
  for (const RunView& run : runs) {
    bars.push_back(bar_of(run));
    highest = std::max(highest, height_of(bars.back()));
  }
  const std::vector<std::string> parts = parts_of(bars, order);
  if (parts.empty()) return {name, "", ""};
  Unit unit = units.front();
  for (const Unit& each : units)
    if (highest >= each.size) unit = each;
  const std::vector<std::string> labels = labels_of(runs);
  const std::string y_title = y_label + " (" + unit.name + ")";
  std::string data = "# " + y_title + "\nrun";
  for (const std::string& part : parts) data += "\t" + one_line(part);
  data += "\n";
  size_t longest = 0, first = 0;  // labels, in characters
  int count = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (bars[i].empty()) continue;
    ++count;
    if (first == 0) first = labels[i].size();
    longest = std::max(longest, labels[i].size());
    data += label(labels[i]) + row_of(bars[i], parts, unit.size);
  }
  // Few bars would be drawn as wide as the page; many need a wider page, or labels overlap.
  Plot plot{name, std::move(data), "", std::max(960, 280 + 34 * count),
            460 + label_height * static_cast<int>(longest)};
  plot.commands =
      "set key outside right top vertical Left reverse invert\nset style data histograms\nset "
      "style histogram rowstacked\n"
      "set style fill solid 0.9 border rgb '#ffffff'\nset boxwidth 0.7\nset yrange [0:*]\n"
      "set xrange [-0.5:" +
      plot_number(std::max(4.0, static_cast<double>(count)) - 0.5) +
      "]\nset xtics rotate by 40 right noenhanced\nset lmargin " +
      plot_number(std::max(10.0, label_width * static_cast<double>(first))) + "\nset ylabel " +
      quoted(y_title) + "\n" + plot_command(parts, order);
  return plot;
}

double largest_bytes(const MemoryEntry& entry, const RunView& run) {
  if (entry.bytes.empty()) return 0.0;
  const double bytes =
      static_cast<double>(*std::max_element(entry.bytes.begin(), entry.bytes.end()));
  // A sum: the mean stands for each rank.
  const bool is_sum = entry.reduced && run.summary().world_size > 0;
  return is_sum ? bytes / static_cast<double>(run.summary().world_size) : bytes;
}

// Extent of each class of the arena.
Bar planned_memory(const Record& record) {
  Bar bar;
  for (const ArenaEntry& buffer : record.arena) {
    const double end = static_cast<double>(buffer.offset_bytes + buffer.bytes);
    const auto known = std::find_if(bar.begin(), bar.end(), [&](const auto& part) {
      return part.first == buffer.memory_class;
    });
    if (known == bar.end())
      bar.emplace_back(buffer.memory_class, end);
    else
      known->second = std::max(known->second, end);
  }
  return bar;
}

}  // namespace

Plot memory_plot(const Runs& runs, const PlotOptions&) {
  const std::vector<Unit> units = {{"MiB", static_cast<double>(MiB)},
                                   {"GiB", static_cast<double>(GiB)}};
  const std::vector<std::string> order = {"parameters",  "gradients",     "optimizer_state",
                                          "activations", "communication", "workspace"};
  const auto bar_of = [](const RunView& run) {
    Bar bar;
    for (const MemoryEntry& entry : run.record().memory)
      if (entry.name != "peak" && entry.name != "arena" && entry.name != "device_used")  // wholes
        bar.emplace_back(entry.name, largest_bytes(entry, run));
    // A run that memory did not suffice for has the plan of rank 0.
    return bar.empty() ? planned_memory(run.record()) : bar;
  };
  return bar_plot("memory", "Memory of the fullest rank", units, order, runs, bar_of);
}

// Kinds of work where a record has them, else its programs; "step" is the whole of both.
Plot breakdown_plot(const Runs& runs, const PlotOptions&) {
  const std::vector<Unit> units = {{"ms", 1e-3}, {"s", 1.0}};
  const std::vector<std::string> order = {"linear",    "attention",  "head_loss",
                                          "layernorm", "activation", "embedding",
                                          "data",      "optimizer",  "communication"};
  return bar_plot(
      "breakdown", "Time per step of the slowest rank", units, order, runs, [](const RunView& run) {
        const std::string prefix = "region_";
        const auto is_kind = [&](const RegionTime& region) {
          return region.name.compare(0, prefix.size(), prefix) == 0;
        };
        const std::vector<RegionTime> regions = slowest_rank(run.record()).regions;
        const bool by_kind = std::any_of(regions.begin(), regions.end(), is_kind);
        Bar bar;
        double rest_s = 0.0;
        for (const RegionTime& region : regions) {
          if (region.name == "step") {
            rest_s += region.time_s;
          } else if (is_kind(region) || !by_kind || region.name == "communication") {
            bar.emplace_back(is_kind(region) ? region.name.substr(prefix.size()) : region.name,
                             region.time_s);
            rest_s -= region.time_s;
          }
        }
        if (rest_s > 0.0) bar.emplace_back("other", rest_s);
        return bar;
      });
}

}  // namespace gptbench
