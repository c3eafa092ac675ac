// Pictures as SVG: one colour scheme that is legible on white and on dark ground, textures, dashes
// and marks beside the colours, tips as <title> elements.
#pragma once

#include <string>

#include "post/picture.h"

namespace gptbench {

// Text of a result file in XML: printable, & < > " ' escaped.
std::string xml(const std::string& text);

// CSS of all pictures of a page.
std::string picture_style();

// The <svg> element. `style`: picture_style() in a file of its own, "" in a page that has it.
std::string svg_of(const Picture& picture, const std::string& style = "");

// "950", "12.5k", "3M": a tick's label, at most three significant digits; whole numbers below 10^6
// that thousands would round stay exact.
std::string tick_label(double value);

// Round numbers (1, 2, 5 times a power of ten) between two values, at most `most`.
std::vector<double> round_ticks(double least, double largest, size_t most);
// The same for a logarithmic axis of `pixels` (0 < least < largest), as far as labels of `room`
// pixels fit.
std::vector<double> log_ticks(double least, double largest, double pixels, double room);

}  // namespace gptbench
