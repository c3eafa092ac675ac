// Pieces of gnuplot text that several plots share.
#pragma once

#include <string>
#include <vector>

#include "post/run_view.h"

namespace gptbench {

// Linetypes that plot.cpp defines; from then on colours come again, dashed.
constexpr size_t num_linetypes = 12;
constexpr int linetype_marks[num_linetypes] = {7, 5, 9, 11, 13, 6, 4, 8, 10, 12, 14, 15};

// "%.9g".
std::string plot_number(double value);

// Text of a result file for gnuplot's data and commands: printable, line breaks and tabs are
// blanks.
std::string one_line(const std::string& text);

// A gnuplot string of one_line(text). What gnuplot interprets in double quotes (the quote,
// backslash, backquote, @) stands as octal codes. Single quotes will not do: gnuplot 5.4 refuses
// '''x'.
std::string quoted(const std::string& text);

// " lt 3 pt 9" for series `index` from 0 drawn with `style` (lines, points, linespoints): from the
// 13th on a colour comes again with dashes and another mark.
std::string linetype(size_t index, const std::string& style);

// "950", "12.5k", "3M": a tic's label, at most three significant digits.
std::string tic_label(double value);

// Commands for a logarithmic axis ("x", "y") over `values` (positive, at least one): range with
// room on both sides, which a single value needs too, and tics. `tics_at_values`: a tic at each
// value, but for those whose labels would overlap on an axis of `pixels`; else at round
// numbers.
std::string log_axis(const std::string& axis, std::vector<double> values, bool tics_at_values,
                     double pixels);

// Commands for a legend of these titles below a plot that is `width` pixels wide, in as many
// columns as fit; `height` grows by what it takes.
std::string legend_below(const std::vector<std::string>& titles, int width, int& height);

// Names of runs with their ranks and, where they did not come to figures, their outcome; told apart
// by a number where several have one name.
std::vector<std::string> labels_of(const Runs& runs);

}  // namespace gptbench
