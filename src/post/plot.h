// Plots, drawn by gnuplot: for each kind a data file, a script and two pictures (SVG and PNG).
#pragma once

#include <string>
#include <vector>

#include "post/run_view.h"

namespace gptbench {

// One plot before it is drawn. `data` is what the script reads as <name>.dat: text that other
// programs can read as well; `commands` draw it, and may be used twice, for each of two terminals.
struct Plot {
  std::string name;
  std::string data;
  std::string commands;
  int width = 960, height = 600;  // pixels
};

struct PlotOptions {
  std::string over;  // "ranks", "length"; "": that of which the runs have more values
};

struct PlotKind {
  const char* name;
  const char* doc;  // one line, for --help
  // A plot with empty data where no run has the figures that it shows. Published rows are points
  // without a line.
  Plot (*make)(const Runs& runs, const PlotOptions& options);
};

Plot throughput_plot(const Runs& runs, const PlotOptions& options = {});
Plot utilisation_plot(const Runs& runs, const PlotOptions& options = {});
Plot scaling_plot(const Runs& runs, const PlotOptions& options = {});
Plot memory_plot(const Runs& runs, const PlotOptions& options = {});
Plot breakdown_plot(const Runs& runs, const PlotOptions& options = {});
Plot loss_plot(const Runs& runs, const PlotOptions& options = {});

inline constexpr PlotKind plot_kinds[] = {
    {"throughput", "tokens/s over ranks, or over the sequence length", throughput_plot},
    {"utilisation", "MFU over ranks, or over the sequence length", utilisation_plot},
    {"scaling", "speed-up and efficiency over ranks", scaling_plot},
    {"memory", "largest memory of a rank by class, one bar per run", memory_plot},
    {"breakdown", "time of the slowest rank by region, one bar per run", breakdown_plot},
    {"loss", "loss over steps", loss_plot},
};

// Writes <directory>/<kind>.dat, .gp, .svg and .png for the kind named, or for each kind ("all")
// that the runs have figures for; returns one line per plot: what was written, or why there is
// none. Throws Error(Exit::io) where files cannot be written or gnuplot is missing or fails, and
// Error(Exit::usage) where a kind that was asked for by name has nothing to show.
std::string draw_plots(const Runs& runs, const std::string& kind, const std::string& directory,
                       const PlotOptions& options = {});

}  // namespace gptbench
