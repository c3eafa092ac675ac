// Plots of curves: throughput, utilisation, scaling and loss. Each is its data and the commands
// that are its own.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "post/plot.h"
#include "post/plot_text.h"
#include "post/style.h"

namespace gptbench {
namespace {

constexpr int width = 960, height = 560;
constexpr double x_axis_pixels = 840.0, y_axis_pixels = 460.0;

struct Curve {
  std::string title;
  std::vector<std::vector<double>> rows;  // x, y, ...
  bool published = false;                 // drawn as points, without a line
};

// Curves as blocks that two empty lines separate: gnuplot's `index`.
std::string blocks_of(const std::vector<Curve>& curves, const std::string& columns) {
  std::string text = "# " + columns + "\n";
  for (size_t c = 0; c < curves.size(); ++c) {
    text += (c == 0 ? "# " : "\n\n# ") + one_line(curves[c].title) + "\n";
    for (const std::vector<double>& row : curves[c].rows) {
      for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : "\t") + plot_number(row[i]);
      text += "\n";
    }
  }
  return text;
}

// `column` over the first one; without titles where the legend stands elsewhere.
std::string plot_command(const std::vector<Curve>& curves, int column, const std::string& style,
                         bool titles) {
  std::string command = "plot";
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::string own = curves[c].published ? "points" : style;
    command += (c == 0 ? " data index " : ", \\\n  data index ") + std::to_string(c) +
               " using 1:" + std::to_string(column) + " with " + own + linetype(c, own) +
               (titles ? " title " + quoted(curves[c].title) : " notitle");
  }
  return command;
}

std::vector<double> column_of(const std::vector<Curve>& curves, size_t column) {
  std::vector<double> values;
  for (const Curve& curve : curves)
    for (const std::vector<double>& row : curve.rows) values.push_back(row[column]);
  return values;
}

std::vector<std::string> titles_of(const std::vector<Curve>& curves) {
  std::vector<std::string> titles;
  for (const Curve& curve : curves) titles.push_back(curve.title);
  return titles;
}

// Axis over which runs differ: the sequence length where that takes more values than the ranks do.
bool over_sequence_length(const Runs& runs, const PlotOptions& options) {
  if (!options.over.empty()) return options.over == "length";
  std::set<int64_t> ranks, lengths;
  for (const RunView& run : runs) {
    ranks.insert(run.summary().world_size);
    lengths.insert(run.seq_length());
  }
  return lengths.size() > ranks.size();
}

// Title of a curve: what its points have in common. A published point without a model is its
// series.
std::string title_of(const RunView& run, bool over_length) {
  const bool point = run.is_published() && run.seq_length() == 0;
  if (point) return "published: " + run.text("run", "name");
  return (run.is_published() ? "published: " : "") + run.model_name() + ", " +
         (over_length ? std::to_string(run.summary().world_size) + " ranks"
                      : "sequence " + std::to_string(run.seq_length())) +
         ", " + run.text("precision", "compute", "fp32") +
         (run.zero_stage() == 0 ? "" : ", ZeRO " + std::to_string(run.zero_stage())) +
         (run.checkpoints() ? ", " + run.checkpointing() + " checkpointing" : "");
}

// Titles by which runs form curves; the device is in them where there are several.
std::function<std::string(const RunView&)> titles_for(const Runs& runs, bool over_length) {
  std::set<std::string> devices;
  for (const RunView& run : runs)
    if (run.seq_length() > 0) devices.insert(run.device_name());
  const bool several = devices.size() > 1;
  return [=](const RunView& run) {
    return title_of(run, over_length) +
           (several && run.seq_length() > 0 ? ", " + run.device_name() : "");
  };
}

// Of rows with one x, the first: rows are sorted so that it is the best.
void keep_first_of_each_x(std::vector<std::vector<double>>& rows) {
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const auto& a, const auto& b) { return a[0] == b[0]; }),
             rows.end());
}

// Words at the foot of a plot where a run did not come to figures.
std::string failures_of(const Runs& runs, bool over_length) {
  std::map<int64_t, std::set<std::string>> outcomes;
  for (const RunView& run : runs) {
    const int64_t x = over_length ? run.seq_length() : run.summary().world_size;
    if (!run.counts() && x > 0) outcomes[x].insert(run.outcome());
  }
  std::string commands;
  for (const auto& [x, words] : outcomes)
    commands += "set label " + quoted(join({words.begin(), words.end()}, ", ")) + " at first " +
                std::to_string(x) + ", graph 0.02 rotate by 90 tc rgb '#a00000'\n";
  return commands;
}

// Of large numbers "1.5M".
std::string linear_format(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end()) >= 1e5 ? "%.1s%c" : "%.10g";
}

Plot curve_plot(const std::string& name, const std::string& y_label, const Runs& runs,
                const PlotOptions& options, bool proportional,
                const std::function<double(const RunView&)>& figure_of) {
  Runs counting;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().world_size > 0 && figure_of(run) > 0.0)
      counting.push_back(run);
  if (counting.empty()) return {name, "", ""};
  const bool over_length = over_sequence_length(counting, options);
  const std::string x_label = over_length ? "Sequence length (tokens)" : "Ranks";
  std::vector<Curve> curves;
  const auto title = titles_for(counting, over_length);
  for (const Runs& group : grouped(counting, title)) {
    Curve curve{title(group.front()), {}, group.front().is_published()};
    for (const RunView& run : group)
      if (const int64_t x = over_length ? run.seq_length() : run.summary().world_size; x > 0)
        curve.rows.push_back({static_cast<double>(x), figure_of(run)});
    std::sort(curve.rows.begin(), curve.rows.end(), [](const auto& a, const auto& b) {
      return a[0] != b[0] ? a[0] < b[0] : a[1] > b[1];
    });
    keep_first_of_each_x(curve.rows);
    if (!curve.rows.empty()) curves.push_back(std::move(curve));
  }
  if (curves.empty()) return {name, "", ""};
  // Over ranks, throughput spans decades and equal efficiency is a straight line.
  const std::string y_axis = proportional && !over_length
                                 ? log_axis("y", column_of(curves, 1), false, y_axis_pixels)
                                 : "set yrange [0:*]\nset offsets 0, 0, graph 0.1, 0\n"
                                   "set format y '" +
                                       linear_format(column_of(curves, 1)) + "'\n";
  Plot plot{name, blocks_of(curves, x_label + "\t" + y_label), "", width, height};
  plot.commands = legend_below(titles_of(curves), width, plot.height) +
                  log_axis("x", column_of(curves, 0), true, x_axis_pixels) + y_axis +
                  failures_of(runs, over_length) + "set xlabel " + quoted(x_label) +
                  "\nset ylabel " + quoted(y_label) + "\n" +
                  plot_command(curves, 2, "linespoints", true) + "\n";
  return plot;
}

// "mpt", or all of them where the runs have several.
std::string conventions_of(const Runs& runs) {
  std::set<std::string> names;
  for (const RunView& run : runs)
    if (run.counts()) names.insert(run.flops_convention());
  return join({names.begin(), names.end()}, ", ");
}

}  // namespace

Plot throughput_plot(const Runs& runs, const PlotOptions& options) {
  return curve_plot("throughput", "Tokens/s", runs, options, true,
                    [](const RunView& run) { return run.summary().tokens_per_s; });
}

Plot utilisation_plot(const Runs& runs, const PlotOptions& options) {
  return curve_plot(
      "utilisation", "MFU (%), FLOPs convention " + conventions_of(runs), runs, options, false,
      [](const RunView& run) { return run.utilisation(run.flops_convention(), false); });
}

Plot scaling_plot(const Runs& runs, const PlotOptions&) {
  Runs counting;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().tokens_per_s > 0.0 && run.summary().world_size > 0)
      counting.push_back(run);
  std::vector<Curve> curves;
  const auto title = titles_for(counting, false);
  for (Runs group : grouped(counting, title)) {
    std::stable_sort(group.begin(), group.end(), [](const RunView& a, const RunView& b) {
      const Summary &of_a = a.summary(), &of_b = b.summary();
      return of_a.world_size != of_b.world_size ? of_a.world_size < of_b.world_size
                                                : of_a.tokens_per_s > of_b.tokens_per_s;
    });
    const Summary& base = group.front().summary();
    if (group.back().summary().world_size == base.world_size) continue;
    Curve curve{title(group.front()), {}, group.front().is_published()};
    for (const RunView& run : group) {
      const double ratio =
          static_cast<double>(run.summary().world_size) / static_cast<double>(base.world_size);
      const double speedup = run.summary().tokens_per_s / base.tokens_per_s;
      curve.rows.push_back(
          {static_cast<double>(run.summary().world_size), speedup, 100.0 * speedup / ratio, ratio});
    }
    keep_first_of_each_x(curve.rows);
    curves.push_back(std::move(curve));
  }
  if (curves.empty()) return {"scaling", "", ""};
  Plot plot{"scaling", blocks_of(curves, "ranks\tspeed-up\tefficiency (%)\tideal speed-up"), "",
            width, 760};
  std::vector<std::string> titles = titles_of(curves);
  titles.emplace_back("ideal");
  const std::string legend = legend_below(titles, width, plot.height);
  std::vector<double> speedups = column_of(curves, 1);
  const std::vector<double> ideals = column_of(curves, 3);
  speedups.insert(speedups.end(), ideals.begin(), ideals.end());
  const std::string x_axis = log_axis("x", column_of(curves, 0), true, x_axis_pixels);
  std::string ideal;
  for (size_t c = 0; c < curves.size(); ++c)
    ideal += ", \\\n  data index " + std::to_string(c) +
             " using 1:4 with lines lc rgb '#666666' dt 3 lw 2 notitle";
  // Two panels, efficiency below with the legend of both.
  plot.commands = "set multiplot layout 2, 1\nset lmargin 10\nunset key\n" + x_axis +
                  log_axis("y", speedups, false, y_axis_pixels / 2.0) +
                  "unset xlabel\nset ylabel 'Speed-up over the fewest ranks'\n" +
                  failures_of(runs, false) + plot_command(curves, 2, "linespoints", false) + ideal +
                  "\nunset logscale y\nunset label\nset yrange [0:*]\nset ytics auto\n"
                  "set offsets 0, 0, graph 0.1, 0\nset xlabel 'Ranks'\n"
                  "set ylabel 'Efficiency (%)'\n" +
                  legend + plot_command(curves, 3, "linespoints", true) +
                  ", \\\n  100 with lines lc rgb '#666666' dt 3 lw 2 title 'ideal'\n"
                  "unset multiplot\n";
  return plot;
}

Plot loss_plot(const Runs& runs, const PlotOptions&) {
  constexpr size_t most_points = 60;  // beyond, marks would hide the line
  std::vector<Curve> curves;
  size_t longest = 0;
  const std::vector<std::string> labels = labels_of(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<double>& loss = runs[i].record().loss;
    if (loss.empty()) continue;
    longest = std::max(longest, loss.size());
    Curve curve{labels[i], {}};
    for (size_t step = 0; step < loss.size(); ++step)
      curve.rows.push_back({static_cast<double>(step), loss[step]});
    curves.push_back(std::move(curve));
  }
  if (curves.empty()) return {"loss", "", ""};
  Plot plot{"loss", blocks_of(curves, "step\tloss (nat per token)"), "", width, height};
  plot.commands = legend_below(titles_of(curves), width, plot.height) +
                  "set xrange [0:" + std::to_string(std::max<size_t>(longest, 2) - 1) +
                  "]\nset xlabel 'Step'\nset ylabel 'Loss (nat per token)'\n"
                  "set offsets 0, 0, graph 0.05, graph 0.05\n" +
                  plot_command(curves, 2, longest > most_points ? "lines" : "linespoints", true) +
                  "\n";
  return plot;
}

}  // namespace gptbench
