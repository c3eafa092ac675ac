// Pictures of runs: for each kind a data file and two pictures (SVG and PNG).
#pragma once

#include <string>
#include <vector>

#include "post/picture.h"
#include "post/run_view.h"

namespace gptbench {

struct PlotOptions {
  std::string over;  // "ranks", "length"; "": that of which the runs have more values
};

enum class Shows {
  runs,        // each run for itself, in one picture
  comparison,  // of runs: little to see of a single one
  one_run,     // made for each of several, whose pictures are numbered
};

struct PlotKind {
  const char* name;
  const char* doc;  // one line, for --help
  // Empty where no run has the figures that it shows.
  Picture (*make)(const Runs& runs, const PlotOptions& options);
  Shows shows;
};

// Over ranks or sequence length; published and projected rows are points without a line.
Picture throughput_picture(const Runs& runs, const PlotOptions& options = {});
Picture utilisation_picture(const Runs& runs, const PlotOptions& options = {});
Picture scaling_picture(const Runs& runs, const PlotOptions& options = {});
// Bars.
Picture memory_picture(const Runs& runs, const PlotOptions& options = {});
Picture breakdown_picture(const Runs& runs, const PlotOptions& options = {});
Picture messages_picture(const Runs& runs, const PlotOptions& options = {});
// Over steps.
Picture loss_picture(const Runs& runs, const PlotOptions& options = {});
Picture steps_picture(const Runs& runs, const PlotOptions& options = {});
// Over time.
Picture sensors_picture(const Runs& runs, const PlotOptions& options = {});
// Pictures of the first run alone.
Picture timeline_picture(const Runs& runs, const PlotOptions& options = {});
Picture memory_map_picture(const Runs& runs, const PlotOptions& options = {});
Picture ranks_picture(const Runs& runs, const PlotOptions& options = {});
Picture roofline_picture(const Runs& runs, const PlotOptions& options = {});
// Two deck keys that a sweep varied.
Picture sweep_picture(const Runs& runs, const PlotOptions& options = {});

inline constexpr PlotKind plot_kinds[] = {
    {"throughput", "tokens/s over ranks, or over the sequence length", throughput_picture,
     Shows::comparison},
    {"utilisation", "MFU over ranks, or over the sequence length", utilisation_picture,
     Shows::comparison},
    {"scaling", "speed-up and efficiency over ranks", scaling_picture, Shows::comparison},
    {"sweep", "tokens/s over the two or three keys that a sweep varied", sweep_picture,
     Shows::comparison},
    {"timeline", "one step per rank, from trace.json beside result.h5", timeline_picture,
     Shows::one_run},
    {"breakdown", "time per step by kind of work, pipeline bubble", breakdown_picture, Shows::runs},
    {"messages", "payload and time of messages by axis", messages_picture, Shows::runs},
    {"steps", "time of each step", steps_picture, Shows::runs},
    {"loss", "loss over steps", loss_picture, Shows::runs},
    {"sensors", "power, temperature, clock and load over time", sensors_picture, Shows::runs},
    {"memory", "largest memory of a rank by class, and its limit", memory_picture, Shows::runs},
    {"memory_map", "where the buffers of rank 0 lie", memory_map_picture, Shows::one_run},
    {"roofline", "FLOP/s and bytes/s of rank 0's operations", roofline_picture, Shows::one_run},
    {"ranks", "computing time of each rank, by host", ranks_picture, Shows::one_run},
};

// The pictures of a kind: one, or one per run numbered where there are several ("timeline-2").
// why_none receives the reason where there is none.
std::vector<Picture> pictures_of(const PlotKind& kind, const Runs& runs,
                                 const PlotOptions& options = {}, std::string* why_none = nullptr);

// Writes <directory>/<name>.svg, .dat and .png for the kind named, or for each kind ("all") that
// the runs have figures for; returns one line per picture: what was written, or why there is none.
// PNG are converted by rsvg-convert; the last line says so where that is missing. Throws
// Error(Exit::io) where files cannot be written or the conversion fails, and Error(Exit::usage)
// where a kind requested by name has nothing to show.
std::string draw_plots(const Runs& runs, const std::string& kind, const std::string& directory,
                       const PlotOptions& options = {});

}  // namespace gptbench
