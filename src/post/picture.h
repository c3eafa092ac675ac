// A picture as a value: panels with axes, curves, boxes and rules. Each kind of picture
// (post/plot.h) fills one; post/svg.h draws it.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "post/table.h"

namespace gptbench {

// A line of the legend. Colour, texture, mark and dashes follow from `style`, so that one thing
// looks alike in every picture.
struct LegendEntry {
  std::string name;
  size_t style = 0;
};
constexpr size_t neutral = static_cast<size_t>(-1);  // style of what is no series: grey
constexpr size_t hatched = neutral - 1;              // style of boxes: outline and hatching

struct PlotAxis {
  std::string label;  // with its unit
  bool logarithmic = false;
  bool from_zero = false;
  bool ticks_at_values = false;  // of the marks, as far as their labels have room
  bool downwards = false;        // values grow downwards: rows
  bool whole = false;            // no ticks between whole numbers
  // Ticks that are stated, as those of rows; none: round numbers.
  std::vector<std::pair<double, std::string>> ticks = {};
};

// `low` and `high` span an error bar where they differ. `tip` is shown when pointed at.
struct Mark {
  double x = 0.0, y = 0.0, low = 0.0, high = 0.0;
  std::string tip;
};

// Marks in ascending x. The line goes through the median of marks with one x.
struct Curve {
  size_t style = 0;
  std::string name;  // as in the legend
  std::vector<Mark> marks;
  bool line = true;
  bool along_x = false;  // error bars
};

struct Box {
  double left = 0.0, right = 0.0, top = 0.0, bottom = 0.0;
  size_t style = 0;
  std::string name;  // as in the legend
  std::string tip;
  std::string inside = "";           // text, where it fits
  std::string behind = "";           // text right of the box and of `clear_of`
  double strength = 1.0;             // of the colour; less than 1 in heat maps
  double clear_of = 0.0;             // see `behind`
  std::optional<double> value = {};  // of a heat map: what the strength shows
};

// A box from `left` to `right` that reaches `half` above and below y.
inline Box box_around(double left, double right, double y, double half) {
  Box box;
  box.left = left;
  box.right = right;
  box.top = y - half;
  box.bottom = y + half;
  return box;
}

// A dashed line across the panel, at a value of y (or of x); a vertical one may have ends.
struct Rule {
  double at = 0.0;
  std::string label;
  bool vertical = false;
  double top = NAN, bottom = NAN;
};

struct Arrow {
  double from_x = 0.0, from_y = 0.0, to_x = 0.0, to_y = 0.0;
  std::string tip;
};

struct Panel {
  PlotAxis x, y;
  double height = 380.0;  // of the plane, in pixels
  std::vector<Curve> curves = {};
  std::vector<Box> boxes = {};
  std::vector<Rule> rules = {};
  std::vector<Arrow> arrows = {};
};

struct Picture {
  std::string name;      // of its files: "throughput"
  std::string title;     // what is shown
  std::string subtitle;  // of which runs: model, machine, date
  std::vector<LegendEntry> legend = {};
  std::vector<Panel> panels = {};
  // Sentences below it; of an empty picture why it is, where that is not for want of figures.
  std::vector<std::string> notes = {};

  bool empty() const { return panels.empty(); }
};

// Every mark and box with its place and its tip: of a bar its length, its row and its ends, of a
// cell of a heat map its column, row and value. Where a picture has several panels,
// each row names the one that it belongs to.
Table data_of(const Picture& picture);

}  // namespace gptbench
