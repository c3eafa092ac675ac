#include "post/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "post/svg_shapes.h"
#include "post/svg_text.h"
#include "post/ticks.h"
#include "post/xml.h"

namespace gptbench {
namespace {

constexpr double page_width = 960.0, line_height = 18.0;

// Height on the page of the area that the axes enclose; more where labels take several lines.
double height_of(const Panel& panel) {
  size_t most = lines_of_row;
  for (const auto& lines : label_lines(panel.y.ticks)) most = std::max(most, lines.size());
  return panel.height * static_cast<double>(most) / static_cast<double>(lines_of_row);
}

// Where values lie on the page.
struct Scale {
  double least = 0.0, largest = 1.0, from = 0.0, to = 1.0;
  bool logarithmic = false;

  double operator()(double value) const {
    const double part = logarithmic
                            ? std::log(std::max(value, least) / least) / std::log(largest / least)
                            : (value - least) / (largest - least);
    return from + (to - from) * part;
  }
};

// Least and largest of values that are drawn.
struct Range {
  double least = std::numeric_limits<double>::infinity(), largest = -least;

  void add(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    largest = std::max(largest, value);
  }
};

Scale scale_of(const PlotAxis& axis, Range range, bool boxes, double from, double to) {
  if (!(range.least <= range.largest)) range = {0.0, 1.0};
  if (axis.from_zero) range.add(0.0);
  if (axis.logarithmic && range.least > 0.0)
    return {range.least / 1.25, range.largest * 1.25, from, to, true};
  double room = range.largest - range.least;
  if (room <= 0.0) room = range.largest != 0.0 ? std::abs(range.largest) : 1.0;
  const double below = axis.from_zero && range.least >= 0.0 ? 0.0 : (boxes ? 0.0 : 0.05 * room);
  const double above = boxes ? 0.0 : 0.06 * room;
  return {range.least - below, std::max(range.largest + above, range.least + 1e-300), from, to,
          false};
}

// One panel on the page.
class Drawing {
 public:
  Drawing(const Panel& panel, double top) : panel_(panel) {
    double label = 44.0;
    for (const auto& tick : panel.y.ticks)
      label = std::max(label, std::min(label_width, width_of(tick.second)) + 4.0);
    left_ = label + (panel.y.label.empty() ? 8.0 : 30.0);
    double behind = 0.0;
    for (const Box& box : panel.boxes) behind = std::max(behind, width_of(box.behind));
    right_ = page_width - 20.0 - (behind > 0.0 ? behind + 4.0 : 0.0);
    top_ = top;
    bottom_ = top + height_of(panel);
    const Range xs = range_of(true), ys = range_of(false);
    x_ = scale_of(panel.x, xs, !panel.boxes.empty(), left_, right_);
    y_ = panel.y.downwards ? scale_of(panel.y, ys, true, top_, bottom_)
                           : scale_of(panel.y, ys, false, bottom_, top_);
  }

  std::string text() const { return axis_x() + axis_y() + boxes() + curves() + arrows() + rules(); }

 private:
  Range range_of(bool of_x) const {
    Range range;
    for (const Curve& curve : panel_.curves)
      for (const Mark& mark : curve.marks) {
        range.add(of_x ? mark.x : mark.y);
        if (of_x == curve.along_x && mark.low < mark.high) {
          range.add(mark.low);
          range.add(mark.high);
        }
      }
    for (const Box& box : panel_.boxes) {
      range.add(of_x ? box.left : box.top);
      range.add(of_x ? box.right : box.bottom);
    }
    for (const Arrow& arrow : panel_.arrows) {
      range.add(of_x ? arrow.from_x : arrow.from_y);
      range.add(of_x ? arrow.to_x : arrow.to_y);
    }
    for (const Rule& rule : panel_.rules)
      if (rule.vertical == of_x) range.add(rule.at);
    for (const auto& tick : (of_x ? panel_.x : panel_.y).ticks)
      for (const double side : {-0.5, 0.5}) range.add(tick.first + side);
    return range;
  }

  std::vector<std::pair<double, std::string>> ticks_of(const PlotAxis& axis, const Scale& scale,
                                                       bool of_x) const {
    if (!axis.ticks.empty()) return axis.ticks;
    const double pixels = std::abs(scale.to - scale.from), room = of_x ? 52.0 : 26.0;
    std::vector<double> values;
    if (axis.ticks_at_values) {
      for (const Curve& curve : panel_.curves)
        for (const Mark& mark : curve.marks)
          if (const double value = of_x ? mark.x : mark.y; std::isfinite(value))
            values.push_back(value);
      std::sort(values.begin(), values.end());
    } else if (scale.logarithmic) {
      values = log_ticks(scale.least, scale.largest, pixels, room);
    } else {
      values = round_ticks(scale.least, scale.largest,
                           static_cast<size_t>(std::max(4.0, pixels / (2 * room))));
    }
    std::vector<std::pair<double, std::string>> ticks;
    // Steps begin with 1, which stands in for 0.
    const double first = axis.whole && range_of(of_x).least > 0.0 ? 1.0 : -INFINITY;
    for (double value : values) {
      value = std::max(value, first);
      if (axis.whole && value != std::floor(value)) continue;
      if (axis.ticks_at_values && !ticks.empty() &&
          std::abs(scale(value) - scale(ticks.back().first)) < room)
        continue;
      ticks.emplace_back(value, tick_label(value));
    }
    return ticks;
  }

  std::string axis_x() const {
    std::string text;
    for (const auto& [value, label] : ticks_of(panel_.x, x_, true)) {
      if (panel_.y.downwards) text += line_of(x_(value), top_, x_(value), bottom_, "grid");
      text += line_of(x_(value), bottom_, x_(value), bottom_ + 5.0, "axis") +
              text_at(x_(value), bottom_ + 18.0, "mid", label);
    }
    return text + line_of(left_, bottom_, right_, bottom_, "axis") +
           text_at((left_ + right_) / 2.0, bottom_ + 38.0, "mid", panel_.x.label);
  }

  std::string axis_y() const {
    std::string text;
    const std::vector<std::pair<double, std::string>> ticks = ticks_of(panel_.y, y_, false);
    const std::vector<std::vector<std::string>> labels = label_lines(ticks);
    for (size_t i = 0; i < ticks.size(); ++i) {
      const double value = ticks[i].first;
      if (!panel_.y.downwards) text += line_of(left_, y_(value), right_, y_(value), "grid");
      double y =
          y_(value) + 4.0 - 0.5 * label_line_height * static_cast<double>(labels[i].size() - 1);
      for (const std::string& line : labels[i]) {
        text += text_at(left_ - 7.0, y, "end", line);
        y += label_line_height;
      }
    }
    if (!panel_.y.label.empty()) {
      const std::string middle = number((top_ + bottom_) / 2.0);
      text += text_at(15.0, (top_ + bottom_) / 2.0, "mid", panel_.y.label,
                      " transform=\"rotate(-90 15 " + middle + ")\"");
    }
    return text + line_of(left_, top_, left_, bottom_, "axis");
  }

  std::string boxes() const {
    std::string text, words;  // these above all boxes
    for (const Box& box : panel_.boxes) {
      const double x = x_(std::min(box.left, box.right)), x1 = x_(std::max(box.left, box.right));
      const double y = std::min(y_(box.top), y_(box.bottom));
      const double height = std::max(1.0, std::abs(y_(box.top) - y_(box.bottom)));
      const double width = std::max(0.6, x1 - x);
      if (!std::isfinite(x) || !std::isfinite(width) || !std::isfinite(y)) continue;
      text += rectangle(x, y, width, height, box.style, box.strength, box.tip);
      const double middle = y + height / 2.0 + 4.0;
      if (!box.inside.empty() && width > width_of(box.inside) + 4.0 && height > 12.0)
        words +=
            text_at(x + width / 2.0, middle,
                    box.strength < 1.0 || box.style == hatched ? std::string("mid on")
                                                               : "mid " + class_of("t", box.style),
                    box.inside, " pointer-events=\"none\"");
      if (!box.behind.empty())
        words += text_at(std::max(x1, x_(box.clear_of)) + 6.0, middle, "", box.behind);
    }
    return text + words;
  }

  // The line of a curve, through the median of the marks with one x.
  std::string path_of(const Curve& curve) const {
    std::string path;
    for (size_t first = 0, next = 0; first < curve.marks.size(); first = next) {
      const double x = curve.marks[first].x;  // not a number: equal to nothing, itself included
      std::vector<double> values;
      do {
        if (std::isfinite(curve.marks[next].y)) values.push_back(curve.marks[next].y);
      } while (++next < curve.marks.size() && curve.marks[next].x == x);
      if (values.empty() || !std::isfinite(x)) continue;
      std::sort(values.begin(), values.end());
      const size_t half = values.size() / 2;
      const double middle =
          values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
      path += (path.empty() ? "M" : "L") + number(x_(x)) + " " + number(y_(middle));
    }
    const char* const dash = dash_of(curve.style);
    return "<path class=\"line " + class_of("s", curve.style) + "\" d=\"" + path + "\"" +
           (*dash == '\0' ? "" : " stroke-dasharray=\"" + std::string(dash) + "\"") + "/>\n";
  }

  std::string curves() const {
    std::string text;
    for (const Curve& curve : panel_.curves) {
      if (curve.line && curve.marks.size() > 1) text += path_of(curve);
      for (const Mark& mark : curve.marks) {
        if (!std::isfinite(mark.x) || !std::isfinite(mark.y)) continue;
        const double x = x_(mark.x), y = y_(mark.y);
        if (mark.low < mark.high) {
          const Scale& scale = curve.along_x ? x_ : y_;
          const std::string low = number(scale(mark.low)), high = number(scale(mark.high));
          text +=
              "<path class=\"bar " + (curve.along_x ? "axis" : class_of("s", curve.style)) +
              "\" d=\"" +
              (curve.along_x ? "M" + low + " " + number(y - 4) + "v8m0 -4H" + high + "m0 -4v8"
                             : "M" + number(x - 4) + " " + low + "h8m-4 0V" + high + "m-4 0h8") +
              "\"/>\n";
        }
        if (!curve.along_x) text += mark_of(curve.style, x, y, mark.tip);
      }
    }
    return text;
  }

  std::string arrows() const {
    std::string text;
    for (const Arrow& arrow : panel_.arrows) {
      const double x = x_(arrow.to_x), y = y_(arrow.to_y);
      text += "<path class=\"arrow\" d=\"M" + number(x_(arrow.from_x)) + " " +
              number(y_(arrow.from_y)) + "L" + number(x) + " " + number(y) + "m-2 0h4\"" +
              title_of(arrow.tip) + (arrow.tip.empty() ? "" : "</path>\n");
    }
    return text;
  }

  std::string rules() const {
    std::string text;
    for (const Rule& rule : panel_.rules) {
      const double at = rule.vertical ? x_(rule.at) : y_(rule.at);
      if (!std::isfinite(at)) continue;
      const bool has_ends = std::isfinite(rule.top) && std::isfinite(rule.bottom);
      const double top = has_ends ? y_(rule.top) : top_,
                   bottom = has_ends ? y_(rule.bottom) : bottom_;
      if (has_ends) text += line_of(at, top, at, bottom, "on");  // it may cross a dark box
      text += rule.vertical ? line_of(at, top, at, bottom, "rule")
                            : line_of(left_, at, right_, at, "rule");
      if (rule.label.empty()) continue;
      const bool right_half = at > (left_ + right_) / 2.0;
      if (rule.vertical)
        text += text_at(right_half ? at + 4.0 : at - 4.0, top_ - 5.0, right_half ? "end on" : "on",
                        rule.label);
      else
        text +=
            text_at(right_ - 2.0, at < top_ + 20.0 ? at + 14.0 : at - 5.0, "end on", rule.label);
    }
    return text;
  }

  const Panel& panel_;
  double left_ = 0.0, right_ = 0.0, top_ = 0.0, bottom_ = 0.0;
  Scale x_, y_;
};

bool is_curve(const Picture& picture, size_t style) {
  for (const Panel& panel : picture.panels)
    for (const Curve& curve : panel.curves)
      if (curve.style == style && !curve.along_x) return true;
  return false;
}

// The legend in rows from `top`, which moves below it.
std::string legend_of(const Picture& picture, double& top) {
  if (picture.legend.empty()) return "";
  std::string text;
  double x = 16.0;
  for (const LegendEntry& entry : picture.legend) {
    const std::string name = cut_to(entry.name, page_width - 80.0);
    const double width = 34.0 + width_of(name) + 18.0;
    if (x > 16.0 && x + width > page_width) {
      x = 16.0;
      top += line_height + 2.0;
    }
    if (is_curve(picture, entry.style)) {
      const char* const dash = dash_of(entry.style);
      text += "<path class=\"line " + class_of("s", entry.style) + "\" d=\"M" + number(x) + " " +
              number(top) + "h28\" stroke-dasharray=\"" + (*dash == '\0' ? "none" : dash) +
              "\"/>\n" + mark_of(entry.style, x + 14.0, top, "");
    } else {
      text += rectangle(x, top - 6.0, 28.0, 12.0, entry.style, 1.0, "");
    }
    text += text_at(x + 34.0, top + 4.0, "", name);
    x += width;
  }
  top += line_height;
  return text;
}

}  // namespace

std::string svg_of(const Picture& picture, const std::string& style) {
  double y = 26.0;
  std::string body = text_at(16.0, y, "ttl", picture.title);
  for (const std::string& line : wrapped(picture.subtitle, page_width - 32.0))
    body += text_at(16.0, y += line_height, "", line);
  y += 22.0;
  body += legend_of(picture, y);
  for (const Panel& panel : picture.panels) {
    if (std::any_of(panel.rules.begin(), panel.rules.end(),
                    [](const Rule& rule) { return rule.vertical && !rule.label.empty(); }))
      y += 12.0;  // their labels stand above the panel
    body += Drawing(panel, y).text();
    y += height_of(panel) + 58.0;
  }
  for (const std::string& note : picture.notes)
    for (const std::string& line : wrapped(note, page_width - 32.0)) {
      body += text_at(16.0, y, "", line);
      y += line_height;
    }
  const std::string width = number(page_width), height = number(y + 4.0);
  const bool alone = !style.empty();
  return "<svg class=\"pic\" role=\"img\" aria-label=\"" + xml(picture.title) +
         "\" viewBox=\"0 0 " + width + " " + height + "\"" +
         (alone ? " width=\"" + width + "\" height=\"" + height +
                      "\" xmlns=\"http://www.w3.org/2000/svg\""
                : std::string()) +
         ">\n" + (alone ? "<style>\n" + style + "</style>\n" : "") +
         (alone ? "<title>" + xml(picture.title) + "</title>\n" : "") +
         "<rect class=\"bg\" width=\"" + width + "\" height=\"" + height + "\"/>\n" + body +
         "</svg>\n";
}

}  // namespace gptbench
