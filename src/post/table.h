// A table of text cells and the formats that it is printed in.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

struct Column {
  std::string heading;
  bool right = false;  // alignment; numbers stand right
};

struct Table {
  std::string caption;  // one line
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells per row as columns
};

// Cells of several lines hold '\n'.
//   md     caption line, pipe table padded to equal widths; a line break in a cell is <br>, text
//          holds no HTML, code or links
//   csv    RFC 4180; several tables are separated by an empty line and begin with "# caption"; text
//          that a spreadsheet would take as a formula (= + - @ first) begins with an apostrophe
//   latex  one `table` environment each, without packages
std::string format_markdown(const std::vector<Table>& tables);
std::string format_csv(const std::vector<Table>& tables);
std::string format_latex(const std::vector<Table>& tables);

// Columns padded to equal widths, two blanks between them; for terminals.
std::string format_plain(const Table& table);

}  // namespace gptbench
