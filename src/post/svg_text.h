// Text in pictures: how wide it is, and how it is cut or broken to fit. Widths are pixels of the
// page, on the wide side: the reader's font is not known.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace gptbench {

constexpr double text_size = 12.0;  // of the font
constexpr double label_width = 330.0, label_line_height = 13.0;
constexpr size_t lines_of_row = 2;  // that a row of a picture has room for

double width_of(const std::string& text);

// Cut to fit `width`, which "..." marks.
std::string cut_to(const std::string& text, double width);

// Lines of words that fit `width`.
std::vector<std::string> wrapped(const std::string& text, double width);

// The lines of each label (its place and text), broken behind the parts of a name to fit
// label_width. Names of a sweep's rows are long and differ at their end: where rows have too little
// room for them, "..." stands for the parts that such labels begin with alike.
std::vector<std::vector<std::string>> label_lines(
    const std::vector<std::pair<double, std::string>>& labels);

}  // namespace gptbench
