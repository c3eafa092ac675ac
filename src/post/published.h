// Published figures that are drawn beside measured ones.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

struct PublishedSeries {
  std::string name;
  struct Point {
    double ranks, tokens_per_s;
  };
  std::vector<Point> points;  // ascending in ranks
};

using Published = std::vector<PublishedSeries>;

// Reads a CSV file whose first line names its columns: `ranks`, `tokens_per_s` and, where there are
// several series, `series`; others are passed over, as are lines that are empty or begin with #.
// Fields hold no commas. Throws Error: Exit::io where the file cannot be read, Exit::usage naming
// the line where it is not of this form.
Published read_published(const std::string& path);

}  // namespace gptbench
