#include "post/plot_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/printable.h"
#include "base/text.h"

namespace gptbench {
namespace {

constexpr double label_width_pixels = 45.0, label_height_pixels = 22.0;  // of one tic
constexpr int character_pixels = 8;  // of the legend's font, on the wide side
constexpr int legend_line_pixels = 20;
constexpr int legend_sample_pixels = 70;  // line sample and gap

std::vector<double> rounded_tics(double least, double largest, double decade_pixels, double room) {
  const bool powers_alone = decade_pixels * std::log10(2.0) < room;
  const std::vector<double> digits = largest / least < 12.0
                                         ? std::vector<double>{1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0}
                                         : std::vector<double>{1.0, 2.0, 5.0};
  std::vector<double> tics;
  for (int power = static_cast<int>(std::floor(std::log10(least)));
       power <= static_cast<int>(std::ceil(std::log10(largest))); ++power)
    for (const double digit : digits)
      if (const double tic = digit * std::pow(10.0, power);
          (digit == 1.0 || !powers_alone) && tic >= least && tic <= largest)
        tics.push_back(tic);
  return tics;
}

}  // namespace

std::string plot_number(double value) {
  return printed("%.9g", value);
}

std::string one_line(const std::string& text) {
  std::string line = printable(text);
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  return line;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : one_line(text))
    result += std::strchr("\"\\`@", c) != nullptr ? printed("\\%03o", static_cast<unsigned>(c))
                                                  : std::string(1, c);
  return result + "\"";
}

std::string linetype(size_t index, const std::string& style) {
  const size_t cycle = index / num_linetypes;
  std::string text = " lt " + std::to_string(index % num_linetypes + 1);
  if (style != "lines")
    text += " pt " + std::to_string(linetype_marks[(index + 5 * cycle) % num_linetypes]);
  if (style != "points" && cycle > 0)
    text += " dt " + std::to_string(1 + std::min<size_t>(cycle, 4));
  return text;
}

std::string tic_label(double value) {
  struct Unit {
    double size;
    const char* name;
  };
  for (const Unit unit : {Unit{1e12, "T"}, Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e4, ""}})
    if (value >= unit.size) {
      const bool thousands = unit.size == 1e4;
      // Sequence lengths and ranks are read exactly: 65536, not 65.5k.
      if (thousands && std::fmod(value, 1e3) != 0.0 && value < 1e6) return plot_number(value);
      return printed("%.3g", value / (thousands ? 1e3 : unit.size)) + (thousands ? "k" : unit.name);
    }
  return plot_number(value);
}

std::string log_axis(const std::string& axis, std::vector<double> values, bool tics_at_values,
                     double pixels) {
  std::sort(values.begin(), values.end());
  const double least = values.front() / 1.25, largest = values.back() * 1.25;
  const double room = axis == "x" ? label_width_pixels : label_height_pixels;
  std::vector<double> tics = values;
  if (!tics_at_values) {
    tics = rounded_tics(least, largest, pixels / std::log10(largest / least), room);
    if (tics.size() < 2) tics = {values.front(), values.back()};
  }
  std::string list;
  double last = 0.0;
  for (const double tic : tics) {
    const double gap =
        last > 0.0 ? pixels * std::log(tic / last) / std::log(largest / least) : room;
    if (gap < room) continue;
    list += (list.empty() ? "" : ", ") + quoted(tic_label(tic)) + " " + plot_number(tic);
    last = tic;
  }
  return "set logscale " + axis + " 10\nset " + axis + "range [" + plot_number(least) + ":" +
         plot_number(largest) + "]\nset " + axis + "tics (" + list + ")\n";
}

std::string legend_below(const std::vector<std::string>& titles, int width, int& height) {
  size_t longest = 1;
  for (const std::string& title : titles) longest = std::max(longest, title.size());
  const int entry_pixels = static_cast<int>(longest) * character_pixels + legend_sample_pixels;
  const int columns = std::clamp(width / entry_pixels, 1, 3);
  const int rows = (static_cast<int>(titles.size()) + columns - 1) / columns;
  height += (rows + 1) * legend_line_pixels;
  // The empty title keeps the legend off the axis' label.
  return "set key bmargin center horizontal Left reverse noinvert title ' ' maxcols " +
         std::to_string(columns) + "\n";
}

std::vector<std::string> labels_of(const Runs& runs) {
  std::vector<std::string> labels;
  for (const RunView& run : runs) {
    const std::string name = run.text("run", "name", "run") + ", " +
                             std::to_string(run.summary().world_size) +
                             (run.summary().world_size == 1 ? " rank" : " ranks") +
                             (run.counts() ? "" : ", " + run.outcome());
    std::string label = name;
    for (int n = 2; std::find(labels.begin(), labels.end(), label) != labels.end(); ++n)
      label = name + " (" + std::to_string(n) + ")";
    labels.push_back(label);
  }
  return labels;
}

}  // namespace gptbench
