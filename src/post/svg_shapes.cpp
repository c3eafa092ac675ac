#include "post/svg_shapes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "post/picture.h"
#include "post/svg.h"
#include "post/xml.h"

namespace gptbench {
namespace {

// Each has a contrast of at least 3 to white and to #14181d.
constexpr struct {
  const char* fill;
  const char* text;  // on the fill, contrast at least 4.5
} palette[] = {{"#0072b2", "#fff"}, {"#d55e00", "#000"}, {"#17a271", "#000"}, {"#c04bb0", "#000"},
               {"#8f7a12", "#000"}, {"#7a7f87", "#000"}, {"#8a63e8", "#000"}, {"#cf3a55", "#fff"}};
constexpr size_t num_colours = std::size(palette);
constexpr const char* dashes[] = {"", "9 4", "2 3", "10 3 2 3"};

std::string attribute(const char* name, double value) {
  return " " + std::string(name) + "=\"" + number(value) + "\"";
}

enum class Lines { none, upright, level, rows, rising, falling };

// Lines of one direction over a box. `dash` holds the widths of stripes and of the gaps between
// them, or along rows the lengths of dashes and gaps. Rows are `width` high; the middle of the
// first lies at `first`, the next one `pitch` below it.
struct Layer {
  Lines lines = Lines::none;
  const char* dash = "none";
  double width = 1.6, first = 0.0, pitch = 0.0;
};

// As many as a bar has kinds of work, so that these can be told apart in print without colours.
// Their number has no common factor with that of the colours: 104 styles differ in one or both.
constexpr Layer textures[][2] = {
    {},
    {{Lines::upright, "1.3 5"}},
    {{Lines::rows, "1.6 4.4", 1.6, 3.0, 6.0}},  // dots
    {{Lines::level, "1.3 4.5"}},
    {{Lines::falling}},
    {{Lines::upright, "1.3 5"}, {Lines::level, "1.3 4.5"}},  // a grid
    {{Lines::upright, "0 7 7 0"}},
    // A chequerboard.
    {{Lines::rows, "4 4", 4.0, 2.0, 8.0}, {Lines::rows, "0 4 4 0", 4.0, 6.0, 8.0}},
    {{Lines::level, "4 5"}},
    {{Lines::falling}, {Lines::rising}},
    {{Lines::upright, "1.3 2 1.3 9"}},  // pairs
    {{Lines::rows, "9 4", 1.6, 3.0, 6.0}},
    {{Lines::upright, "0 7 7 0"}, {Lines::level, "1.3 4.5"}},
};

// Diagonal lines over a rectangle.
std::string diagonals(double x, double y, double width, double height, bool falling) {
  std::string path;
  for (double sum = 8.0; sum < width + height; sum += 10.0) {  // of the distances from a corner
    const double left = std::max(0.0, sum - height), right = std::min(sum, width);
    const auto point = [&](double across) {
      return number(falling ? x + width - across : x + across) + " " + number(y + sum - across);
    };
    path += "M" + point(left) + "L" + point(right);
  }
  return path;
}

std::string layer_over(double x, double y, double width, double height, const Layer& layer) {
  std::string path;
  double line = layer.width;
  switch (layer.lines) {
    case Lines::none:
      return "";
    case Lines::upright:
      path = "M" + number(x) + " " + number(y + height / 2.0) + "h" + number(width);
      line = height;
      break;
    case Lines::level:
      path = "M" + number(x + width / 2.0) + " " + number(y + 2.0) + "v" + number(height - 2.0);
      line = width;
      break;
    case Lines::rows:
      for (double row = layer.first; row + line / 2.0 <= height; row += layer.pitch)
        path += "M" + number(x + 1.5) + " " + number(y + row) + "h" + number(width - 1.5);
      break;
    case Lines::rising:
    case Lines::falling:
      path = diagonals(x, y, width, height, layer.lines == Lines::falling);
  }
  return "<path class=\"tex\" d=\"" + path + "\" stroke-width=\"" + number(line) +
         "\" stroke-dasharray=\"" + layer.dash + "\"/>\n";
}

// Stripes and dots over a rectangle: dashed lines, as wide as it where they are stripes. (Patterns
// would need ids, which several pictures on a page share, and grow a printed page to megabytes.)
std::string texture(double x, double y, double width, double height, size_t style) {
  if (style == hatched)
    return "<path class=\"hatch\" d=\"" + diagonals(x, y, width, height, false) + "\"/>\n";
  const auto& layers = textures[style == neutral ? 0 : style % std::size(textures)];
  return layer_over(x, y, width, height, layers[0]) + layer_over(x, y, width, height, layers[1]);
}

}  // namespace

const char* dash_of(size_t style) {
  return style == neutral ? "3 4" : dashes[(style + style / num_colours) % std::size(dashes)];
}

std::string class_of(const char* prefix, size_t style) {
  return prefix + (style == neutral ? "n" : std::to_string(style % num_colours));
}

std::string number(double value) {
  const std::string text = printed("%.1f", std::floor(10.0 * value + 0.5 + 1e-6) / 10.0);
  return text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0
             ? text.substr(0, text.size() - 2)
             : text;
}

std::string text_at(double x, double y, const std::string& classes, const std::string& text,
                    const std::string& more) {
  return "<text" + attribute("x", x) + attribute("y", y) + " class=\"" + classes + "\"" + more +
         ">" + xml(text) + "</text>\n";
}

std::string line_of(double x0, double y0, double x1, double y1, const std::string& classes) {
  return "<path class=\"" + classes + "\" d=\"M" + number(x0) + " " + number(y0) + "L" +
         number(x1) + " " + number(y1) + "\"/>\n";
}

std::string title_of(const std::string& tip) {
  return tip.empty() ? "/>\n" : "><title>" + xml(tip) + "</title>";
}

std::string mark_of(size_t style, double x, double y, const std::string& tip) {
  static const char* const shapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                                       "m-3.6 -3.6h7.2v7.2h-7.2z",
                                       "m0 -4.6l4.6 8h-9.2z",
                                       "m0 -5l5 5l-5 5l-5 -5z",
                                       "m0 4.6l4.6 -8h-9.2z",
                                       "m-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"};
  const size_t shape = style == neutral ? 3 : style % std::size(shapes);
  return "<path class=\"" + class_of("c", style) + "\" d=\"M" + number(x) + " " + number(y) +
         shapes[shape] + "\"" + title_of(tip) + (tip.empty() ? "" : "</path>\n");
}

std::string rectangle(double x, double y, double width, double height, size_t style,
                      double strength, const std::string& tip) {
  const bool pale = strength < 1.0 && style != hatched;
  return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
         attribute("height", height) + " class=\"" +
         (style == hatched ? (tip.empty() ? "out" : "out tip") : class_of("c", style)) + "\"" +
         (pale ? " fill-opacity=\"" + printed("%.2f", 0.06 + 0.4 * strength) + "\"" : "") +
         title_of(tip) + (tip.empty() ? "" : "</rect>\n") +
         (pale || width < 2.0 ? "" : texture(x, y, width, height, style));
}

std::string picture_style() {
  static const char* const rules = R"(.pic text{font:12px system-ui,'DejaVu Sans',Arial,sans-serif}
.pic .ttl{font-size:17px;font-weight:600}.pic .mid{text-anchor:middle}.pic .end{text-anchor:end}
.pic .line{fill:none;stroke-width:2}.pic .bar{fill:none;stroke-width:1.4}
.pic .axis,.pic .grid,.pic .out{stroke-width:1}
.pic .rule{stroke-width:1.4;stroke-dasharray:6 4}
.pic .arrow{fill:none;stroke-width:.8;stroke-opacity:.7}
.pic .hatch,.pic .tex{fill:none;pointer-events:none}.pic .tex{stroke-opacity:.5}
.pic .hatch{stroke-width:1.3;stroke-opacity:.8}
.pic .out{fill:none;pointer-events:none}.pic .tip{pointer-events:all}
.pic .on,.pic [class*="mid t"]{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.pic [class*="mid t"]{stroke-width:6px}
.pic .cn{fill:#7a7f87}.pic .sn{stroke:#7a7f87}.pic .tn{fill:#000;stroke:#7a7f87}
)";
  std::string colours;
  for (size_t i = 0; i < num_colours; ++i)
    colours += printed(".pic .c%zu{fill:%s}.pic .s%zu{stroke:%s}.pic .t%zu{fill:%s;stroke:%s}\n", i,
                       palette[i].fill, i, palette[i].fill, i, palette[i].text, palette[i].fill);
  const auto ground = [](const char* ink, const char* paper, const char* grid) {
    return printed(
        ".pic text{fill:%s}.pic .bg{fill:%s}.pic .on,.pic .tex{stroke:%s}.pic .grid{stroke:%s}\n"
        ".pic .axis,.pic .rule,.pic .out,.pic .hatch,.pic .arrow{stroke:%s}\n",
        ink, paper, paper, grid, ink);
  };
  return rules + ground("#1b1f24", "#fff", "#dcdfe4") + colours +
         "@media screen and (prefers-color-scheme:dark){\n" +
         ground("#e7eaee", "#14181d", "#3a424c") + "}\n";
}

}  // namespace gptbench
