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
  // The same for programs (csv), at most one; none: this table serves both. Cells of its columns on
  // the right are numbers or empty.
  std::vector<Table> for_programs = {};
  // Why figures are doubtful: for people in the caption, for programs outside the table.
  std::vector<std::string> warnings = {};
};

// Cells of several lines hold '\n'.
//   md     caption line, pipe table padded to equal widths; a line break in a cell is <br>, text
//          holds no HTML, code or links
//   csv    RFC 4180, one table: of several tables all rows, with the columns that any of them has;
//          text that a spreadsheet would take as a formula (= + - @ first) begins with an
//          apostrophe
//   latex  `table` environments that fit on pages of the class article, one for each page of rows;
//          wide ones are scaled (graphicx) and, where they would be too small, turned (rotating). A
//          comment at the top names the packages
std::string format_markdown(const std::vector<Table>& tables);
std::string format_csv(const std::vector<Table>& tables);
std::string format_latex(const std::vector<Table>& tables);

// A number as C and CSV readers take it, nothing before or behind.
bool is_number(const std::string& text);
// The table as programs get it.
const Table& for_programs(const Table& table);

// Columns padded to equal widths, two blanks between them; for terminals.
std::string format_plain(const Table& table);

}  // namespace gptbench
