#include "post/plot.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "io/file_bytes.h"
#include "post/svg.h"

namespace gptbench {
namespace {

constexpr int no_program = 127;  // as a shell says it

// Runs `rsvg-convert NAME.svg` in the directory; by argument vector, never through a shell. Its
// output becomes NAME.png under a temporary name first, so that no link is followed. Returns its
// exit status.
int convert(const std::string& directory, const std::string& name) {
  NewFile png(directory + "/" + name + ".png");
  const pid_t child = ::fork();
  if (child < 0) throw Error(Exit::io, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    if (nowhere >= 0) ::dup2(nowhere, STDIN_FILENO);
    const int output = ::open(png.temporary().c_str(), O_WRONLY | O_NOFOLLOW);
    if (output < 0 || ::dup2(output, STDOUT_FILENO) < 0) ::_exit(1);
    if (::chdir(directory.c_str()) != 0) ::_exit(1);
    const std::string svg = name + ".svg";
    const char* const arguments[] = {"rsvg-convert", svg.c_str(), nullptr};
    ::execvp(arguments[0], const_cast<char* const*>(arguments));
    ::_exit(no_program);
  }
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended < 0) return 1;  // whoever ignores SIGCHLD is not told how it ended
  if (status == 0) png.publish(Existing::replaced);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string one_line(const std::string& text) {
  std::string line = printable(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string tab_separated(const Picture& picture) {
  const Table table = data_of(picture);
  std::string text = "# " + one_line(picture.title) + "\n# " + one_line(picture.subtitle) + "\n";
  for (size_t c = 0; c < table.columns.size(); ++c)
    text += (c == 0 ? "" : "\t") + one_line(table.columns[c].heading);
  for (const auto& row : table.rows)
    for (size_t c = 0; c < row.size(); ++c) text += (c == 0 ? "\n" : "\t") + one_line(row[c]);
  for (const std::string& note : picture.notes) text += "\n# " + one_line(note);
  return text + "\n";
}

std::string number(double value) {
  return printed("%.9g", value);
}

// The tick nearest to the middle of two values, within them or half a row; without one the middle.
std::string name_at(const PlotAxis& axis, double low, double high) {
  const double middle = 0.5 * (low + high);
  double reach = std::max(0.5, 0.5 * std::fabs(high - low));
  std::string name = number(middle);
  for (const auto& [at, text] : axis.ticks)
    if (std::fabs(at - middle) <= reach) {
      reach = std::fabs(at - middle);
      name = text;
    }
  return name;
}

// What tells the panel from the others of the picture: the label of y, or of x where y has none of
// its own.
std::string name_of_panel(const Picture& picture, const Panel& panel) {
  const auto alike =
      std::count_if(picture.panels.begin(), picture.panels.end(),
                    [&](const Panel& other) { return other.y.label == panel.y.label; });
  return alike > 1 || panel.y.label.empty() ? panel.x.label : panel.y.label;
}

bool is_heat_map(const Picture& picture) {
  for (const Panel& panel : picture.panels)
    for (const Box& box : panel.boxes)
      if (box.value) return true;
  return false;
}

std::vector<std::string> row_of(const Curve& curve, const Mark& mark) {
  const bool bar = mark.low < mark.high;
  return std::vector<std::string>{curve.name,
                                  number(mark.x),
                                  number(mark.y),
                                  bar ? number(mark.low) : "",
                                  bar ? number(mark.high) : "",
                                  mark.tip};
}

std::vector<std::string> row_of(const Panel& panel, const Box& box) {
  return std::vector<std::string>{box.name,
                                  number(box.right - box.left),
                                  name_at(panel.y, box.top, box.bottom),
                                  number(box.left),
                                  number(box.right),
                                  box.tip};
}

// A box of a heat map is a place and a value.
std::vector<std::string> cell_of(const Panel& panel, const Box& box) {
  return std::vector<std::string>{box.name, name_at(panel.x, box.left, box.right),
                                  name_at(panel.y, box.top, box.bottom),
                                  box.value ? number(*box.value) : "", box.tip};
}

}  // namespace

Table data_of(const Picture& picture) {
  const bool heat_map = is_heat_map(picture), several = picture.panels.size() > 1;
  Table table{picture.title, {}, {}};
  if (several) table.columns.push_back({"panel", false});
  for (const Column& column : {Column{"series"}, Column{"x", true}, Column{"y", true}})
    table.columns.push_back(column);
  for (const char* const heading : heat_map ? std::vector{"value"} : std::vector{"low", "high"})
    table.columns.push_back({heading, true});
  table.columns.push_back({"meaning", false});
  for (const Panel& panel : picture.panels) {
    const auto add = [&](std::vector<std::string> row) {
      if (several) row.insert(row.begin(), name_of_panel(picture, panel));
      table.rows.push_back(std::move(row));
    };
    for (const Curve& curve : panel.curves)
      for (const Mark& mark : curve.marks) add(row_of(curve, mark));
    for (const Box& box : panel.boxes) add(heat_map ? cell_of(panel, box) : row_of(panel, box));
  }
  return table;
}

std::vector<Picture> pictures_of(const PlotKind& kind, const Runs& runs, const PlotOptions& options,
                                 std::string* why_none) {
  std::vector<Picture> pictures;
  if (kind.shows != Shows::one_run) {
    pictures.push_back(kind.make(runs, options));
  } else {
    for (size_t r = 0; r < runs.size(); ++r) {
      pictures.push_back(kind.make({runs[r]}, options));
      if (runs.size() > 1) pictures.back().name += "-" + std::to_string(r + 1);
    }
  }
  const auto drawn = std::stable_partition(pictures.begin(), pictures.end(),
                                           [](const Picture& picture) { return !picture.empty(); });
  if (why_none != nullptr && drawn == pictures.begin())
    *why_none = pictures.empty() || pictures.front().notes.empty() ? "no run has the figures for it"
                                                                   : pictures.front().notes.front();
  pictures.erase(drawn, pictures.end());
  return pictures;
}

std::string draw_plots(const Runs& runs, const std::string& kind, const std::string& directory,
                       const PlotOptions& options) {
  std::string report;
  std::vector<std::string> names;
  const std::string style = picture_style();
  for (const PlotKind& each : plot_kinds) {
    if (kind != "all" && kind != each.name) continue;
    std::string why_none;
    const std::vector<Picture> pictures = pictures_of(each, runs, options, &why_none);
    if (pictures.empty()) {
      if (kind != "all") throw Error(Exit::usage, "plot " + kind + ": " + why_none);
      report += std::string(each.name) + ": " + why_none + "\n";
    }
    for (const Picture& picture : pictures) {
      create_directories(directory);
      const std::string base = directory + "/" + picture.name;
      write_file(base + ".dat", tab_separated(picture));
      write_file(base + ".svg", svg_of(picture, style));
      report += base + ".svg, .png, .dat\n";
      names.push_back(picture.name);
    }
  }
  for (const std::string& name : names) {
    const int status = convert(directory, name);
    if (status == no_program)
      return report + "no .png: rsvg-convert was not found (Debian: librsvg2-bin)\n";
    if (status != 0)
      throw Error(Exit::io, directory + "/" + name + ".svg: rsvg-convert ended with status " +
                                std::to_string(status));
  }
  return report;
}

}  // namespace gptbench
