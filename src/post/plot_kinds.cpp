// What each plot shows: its data and the commands that are its own.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "post/plot.h"
#include "post/regions.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Single quotes hold any text in gnuplot when they are doubled; line breaks would end the command.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c == '\n' ? ' ' : c;
  }
  return result + "'";
}

// A label in a data file stands in double quotes, which it must not hold.
std::string label(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\\', '/');
  return "\"" + text + "\"";
}

struct Curve {
  std::string title;
  std::vector<std::vector<double>> rows;  // x, y, ...
  bool published = false;                 // drawn as points, without a line
};

// Curves as blocks that two empty lines separate: gnuplot's `index`.
std::string blocks_of(const std::vector<Curve>& curves, const std::string& columns) {
  std::string text = "# " + columns + "\n";
  for (size_t c = 0; c < curves.size(); ++c) {
    std::string title = curves[c].title;
    std::replace(title.begin(), title.end(), '\n', ' ');
    text += (c == 0 ? "# " : "\n\n# ") + title + "\n";
    for (const std::vector<double>& row : curves[c].rows) {
      for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : "\t") + number(row[i]);
      text += "\n";
    }
  }
  return text;
}

std::string plot_command(const std::vector<Curve>& curves, const std::string& style) {
  std::string command = "plot";
  for (size_t c = 0; c < curves.size(); ++c)
    command += (c == 0 ? " data index " : ", \\\n  data index ") + std::to_string(c) +
               " using 1:2 with " + (curves[c].published ? "points" : style) + " lt " +
               std::to_string(c + 1) + " title " + quoted(curves[c].title);
  return command + "\n";
}

// Range of a logarithmic axis with room on both sides; one value alone would leave gnuplot with
// none.
std::string range_of(const std::vector<Curve>& curves, size_t column, const std::string& axis) {
  double least = curves.front().rows.front()[column], largest = least;
  for (const Curve& curve : curves)
    for (const std::vector<double>& row : curve.rows) {
      least = std::min(least, row[column]);
      largest = std::max(largest, row[column]);
    }
  return "set " + axis + "range [" + number(least / 1.25) + ":" + number(largest * 1.25) + "]\n";
}

// Axis over which runs differ: the sequence length where that takes more values than the ranks do.
bool over_sequence_length(const Runs& runs) {
  std::set<int64_t> ranks, lengths;
  for (const RunView& run : runs) {
    ranks.insert(run.summary().world_size);
    lengths.insert(run.seq_length());
  }
  return lengths.size() > ranks.size();
}

std::string title_of(const RunView& run, bool over_length) {
  return run.model_name() + ", " +
         (over_length ? std::to_string(run.summary().world_size) + " ranks"
                      : "sequence " + std::to_string(run.seq_length())) +
         ", " + run.text("precision", "compute", "fp32") +
         (run.checkpointing() == "none" ? "" : ", " + run.checkpointing() + " checkpointing");
}

// Words at the foot of a plot over ranks where a run did not come to figures.
std::string failures_of(const Runs& runs) {
  std::map<int64_t, std::set<std::string>> outcomes;
  for (const RunView& run : runs)
    if (!run.counts() && run.summary().world_size > 0)
      outcomes[run.summary().world_size].insert(run.outcome());
  std::string commands;
  for (const auto& [ranks, words] : outcomes)
    commands += "set label " + quoted(join({words.begin(), words.end()}, ", ")) + " at first " +
                std::to_string(ranks) + ", graph 0.02 rotate by 90 tc rgb '#a00000'\n";
  return commands;
}

std::string published_title(const PublishedSeries& series) {
  return series.name == "published" ? series.name : "published: " + series.name;
}

Plot curve_plot(const std::string& name, const std::string& y_label, const Runs& runs,
                bool proportional, const std::function<double(const RunView&)>& figure_of,
                const Published& published = {}) {
  Runs counting;
  for (const RunView& run : runs)
    if (run.counts() && figure_of(run) > 0.0) counting.push_back(run);
  if (counting.empty()) return {name, "", ""};
  const bool over_length = over_sequence_length(counting);
  const std::string x_label = over_length ? "Sequence length (tokens)" : "Ranks";
  std::vector<Curve> curves;
  for (const Runs& group :
       grouped(counting, [&](const RunView& run) { return title_of(run, over_length); })) {
    Curve curve{title_of(group.front(), over_length), {}};
    for (const RunView& run : group)
      curve.rows.push_back(
          {static_cast<double>(over_length ? run.seq_length() : run.summary().world_size),
           figure_of(run)});
    std::sort(curve.rows.begin(), curve.rows.end());
    curves.push_back(std::move(curve));
  }
  if (!over_length)
    for (const PublishedSeries& series : published) {
      Curve curve{published_title(series), {}, true};
      for (const PublishedSeries::Point& point : series.points)
        curve.rows.push_back({point.ranks, point.tokens_per_s});
      curves.push_back(std::move(curve));
    }
  // Over ranks, throughput spans decades and equal efficiency is a straight line.
  const std::string y_axis =
      proportional && !over_length
          ? "set logscale y 2\nset format y '%.9g'\n" + range_of(curves, 1, "y")
          : "set yrange [0:*]\nset offsets 0, 0, graph 0.1, 0\n";
  return {name, blocks_of(curves, x_label + "\t" + y_label),
          "set logscale x 2\n" + range_of(curves, 0, "x") + y_axis +
              (over_length ? "" : failures_of(runs)) + "set xlabel " + quoted(x_label) +
              "\nset ylabel " + quoted(y_label) + "\n" + plot_command(curves, "linespoints")};
}

// One bar: named parts from below.
using Bar = std::vector<std::pair<std::string, double>>;

// Names of runs, told apart by a number where several have one name.
std::vector<std::string> labels_of(const Runs& runs) {
  std::vector<std::string> labels;
  for (const RunView& run : runs) {
    const std::string name = run.text("run", "name", "run") + ", " +
                             std::to_string(run.summary().world_size) +
                             (run.summary().world_size == 1 ? " rank" : " ranks");
    std::string label = name;
    for (int n = 2; std::find(labels.begin(), labels.end(), label) != labels.end(); ++n)
      label = name + " (" + std::to_string(n) + ")";
    labels.push_back(label);
  }
  return labels;
}

// A table with one row a run and one column for each part that is not zero in all of them, drawn as
// stacked bars. Runs with an empty bar are left out.
Plot bar_plot(const std::string& name, const std::string& y_label, const Runs& runs,
              const std::function<Bar(const RunView&)>& bar_of) {
  std::vector<Bar> bars;
  std::vector<std::string> parts;
  for (const RunView& run : runs) {
    bars.push_back(bar_of(run));
    for (const auto& [part, value] : bars.back())
      if (value > 0.0 && std::find(parts.begin(), parts.end(), part) == parts.end())
        parts.push_back(part);
  }
  if (parts.empty()) return {name, "", ""};
  std::stable_partition(parts.begin(), parts.end(),
                        [](const std::string& p) { return p != "other"; });
  const std::vector<std::string> labels = labels_of(runs);
  std::string data = "run\t" + join(parts, "\t") + "\n";
  double count = 0.0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (bars[i].empty()) continue;
    data += label(labels[i]);
    for (const std::string& part : parts) {
      double value = 0.0;
      for (const auto& each : bars[i])
        if (each.first == part) value = each.second;
      data += "\t" + number(value);
    }
    data += "\n";
    count += 1.0;
  }
  // Few bars would be drawn as wide as the page.
  std::string commands =
      "set key outside right top vertical Left reverse invert\nset style data histograms\nset "
      "style histogram rowstacked\n"
      "set style fill solid 0.9 border rgb '#ffffff'\nset boxwidth 0.7\nset yrange [0:*]\n"
      "set xrange [-0.5:" +
      number(std::max(4.0, count) - 0.5) +
      "]\nset xtics rotate by 30 right noenhanced\nset ylabel " + quoted(y_label) + "\nplot";
  for (size_t p = 0; p < parts.size(); ++p)
    commands += (p == 0 ? " data every ::1 using " : ", \\\n  data every ::1 using ") +
                std::to_string(p + 2) + (p == 0 ? ":xtic(1)" : "") + " lt " +
                std::to_string(p + 1) + " lw 1 title " + quoted(parts[p]);
  return {name, data, commands + "\n"};
}

double largest_mib(const MemoryEntry& entry, const RunView& run) {
  if (entry.bytes.empty()) return 0.0;
  double bytes = static_cast<double>(*std::max_element(entry.bytes.begin(), entry.bytes.end()));
  if (entry.reduced && run.summary().world_size > 0)  // a sum: the mean stands for each rank
    bytes /= static_cast<double>(run.summary().world_size);
  return bytes / static_cast<double>(MiB);
}

}  // namespace

Plot throughput_plot(const Runs& runs, const Published& published) {
  return curve_plot(
      "throughput", "Tokens/s", runs, true,
      [](const RunView& run) { return run.summary().tokens_per_s; }, published);
}

Plot utilisation_plot(const Runs& runs, const Published&) {
  return curve_plot("utilisation", "MFU (%)", runs, false, [](const RunView& run) {
    return run.utilisation(run.summary().flops_convention, false);
  });
}

Plot scaling_plot(const Runs& runs, const Published& published) {
  Runs counting;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().tokens_per_s > 0.0 && run.summary().world_size > 0)
      counting.push_back(run);
  std::vector<Curve> curves;
  for (Runs group : grouped(counting, [](const RunView& run) { return title_of(run, false); })) {
    std::stable_sort(group.begin(), group.end(), [](const RunView& a, const RunView& b) {
      return a.summary().world_size < b.summary().world_size;
    });
    const Summary& base = group.front().summary();
    if (group.back().summary().world_size == base.world_size) continue;
    Curve curve{title_of(group.front(), false), {}};
    for (const RunView& run : group) {
      const double ratio =
          static_cast<double>(run.summary().world_size) / static_cast<double>(base.world_size);
      const double speedup = run.summary().tokens_per_s / base.tokens_per_s;
      curve.rows.push_back(
          {static_cast<double>(run.summary().world_size), speedup, 100.0 * speedup / ratio, ratio});
    }
    curves.push_back(std::move(curve));
  }
  if (curves.empty()) return {"scaling", "", ""};
  const size_t measured = curves.size();
  for (const PublishedSeries& series : published) {
    Curve curve{published_title(series), {}, true};
    const PublishedSeries::Point base = series.points.front();
    for (const PublishedSeries::Point& point : series.points) {
      const double ratio = point.ranks / base.ranks;
      const double speedup = point.tokens_per_s / base.tokens_per_s;
      curve.rows.push_back({point.ranks, speedup, 100.0 * speedup / ratio, ratio});
    }
    curves.push_back(std::move(curve));
  }
  std::string commands =
      "set logscale x 2\nset logscale y 2\nset xlabel 'Ranks'\n"
      "set ylabel 'Speed-up over the fewest ranks'\nset y2label 'Efficiency (%)'\n"
      "set y2range [0:110]\nset y2tics 20\nset border 11\nset rmargin 9\n"
      "set key tmargin left\n" +
      range_of(curves, 0, "x") + failures_of(runs) +
      "plot NaN with lines lc rgb '#000000' dt 2 lw 1 title 'efficiency (right axis)'";
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::string index = ", \\\n  data index " + std::to_string(c);
    const std::string colour = " lt " + std::to_string(c + 1);
    if (curves[c].published) {
      commands += index + " using 1:2 with points" + colour + " title " + quoted(curves[c].title);
      continue;
    }
    commands += index + " using 1:2 with linespoints" + colour + " title " +
                quoted(curves[c].title) + index + " using 1:3 axes x1y2 with linespoints" + colour +
                " dt 2 lw 1 notitle" + index + " using 1:4 with lines lc rgb '#666666' dt 3 lw 2 " +
                (c + 1 == measured ? "title 'ideal'" : "notitle");
  }
  return {"scaling", blocks_of(curves, "ranks\tspeed-up\tefficiency (%)\tideal speed-up"),
          commands + "\n"};
}

Plot memory_plot(const Runs& runs, const Published&) {
  return bar_plot("memory", "Memory of the fullest rank (MiB)", runs, [](const RunView& run) {
    Bar bar;
    for (const MemoryEntry& entry : run.record().memory)
      if (entry.name != "peak" && entry.name != "arena")  // the whole, not parts of it
        bar.emplace_back(entry.name, largest_mib(entry, run));
    return bar;
  });
}

// Kinds of work where a record has them, else its programs; "step" is the whole of both.
Plot breakdown_plot(const Runs& runs, const Published&) {
  return bar_plot("breakdown", "Time a step of the slowest rank (s)", runs, [](const RunView& run) {
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

Plot loss_plot(const Runs& runs, const Published&) {
  std::vector<Curve> curves;
  const std::vector<std::string> labels = labels_of(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<double>& loss = runs[i].record().loss;
    if (loss.empty()) continue;
    Curve curve{labels[i], {}};
    for (size_t step = 0; step < loss.size(); ++step)
      curve.rows.push_back({static_cast<double>(step), loss[step]});
    curves.push_back(std::move(curve));
  }
  if (curves.empty()) return {"loss", "", ""};
  return {"loss", blocks_of(curves, "step\tloss (nat a token)"),
          "set xlabel 'Step'\nset ylabel 'Loss (nat a token)'\n" + plot_command(curves, "lines")};
}

}  // namespace gptbench
