#include "post/table.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "base/choice.h"
#include "base/printable.h"

namespace gptbench {
namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Characters on a terminal: bytes that do not continue a UTF-8 sequence.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::vector<size_t> widths_of(const Table& table,
                              const std::function<std::string(const std::string&)>& escape) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = std::max<size_t>(3, width_of(escape(table.columns[c].heading)));
    for (const auto& row : table.rows) width = std::max(width, width_of(escape(row[c])));
    widths.push_back(width);
  }
  return widths;
}

bool is_punctuation(char c) {
  return std::ispunct(static_cast<unsigned char>(c)) != 0;
}

// Cells and code, HTML, links and pictures cannot begin or end within a text.
std::string markdown_text(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escapes = text[i] == '\\' && i + 1 < text.size() && is_punctuation(text[i + 1]);
    if (escapes || std::strchr("|<`[", text[i]) != nullptr) escaped += '\\';
    escaped += text[i];
  }
  return escaped;
}

std::string markdown_cell(const std::string& text) {
  return replace_all(markdown_text(text), "\n", "<br>");
}

// A spreadsheet takes text that begins like this as a formula; an apostrophe keeps it text.
bool reads_as_formula(const std::string& text) {
  return text.size() > 1 && std::strchr("=+-@\t\r", text.front()) != nullptr && !is_number(text);
}

std::string csv_cell(const std::string& text) {
  const std::string cell = (reads_as_formula(text) ? "'" : "") + text;
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  return "\"" + replace_all(cell, "\"", "\"\"") + "\"";
}

std::string latex_cell(const std::string& text) {
  // A bracket or star where a row begins would be an argument of \\.
  static const std::map<char, std::string> words = {{'\\', "\\textbackslash{}"},
                                                    {'~', "\\textasciitilde{}"},
                                                    {'^', "\\textasciicircum{}"},
                                                    {'<', "\\textless{}"},
                                                    {'>', "\\textgreater{}"},
                                                    {'|', "\\textbar{}"},
                                                    {'[', "{[}"},
                                                    {']', "{]}"},
                                                    {'*', "{*}"},
                                                    {'\n', ", "}};
  std::string escaped;
  for (const char c : printable(text)) {  // its backslashes are text, too
    const auto word = words.find(c);
    const bool is_special = std::strchr("&%$#_{}", c) != nullptr;
    escaped += word != words.end() ? word->second : (is_special ? "\\" : "") + std::string(1, c);
  }
  return escaped;
}

// Headings, then the rows.
std::vector<std::vector<std::string>> lines_of(const Table& table) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : table.columns) lines[0].push_back(column.heading);
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  return lines;
}

std::string markdown_table(const Table& table) {
  const std::vector<size_t> widths = widths_of(table, markdown_cell);
  std::string heading = "|", rule = "|", body;
  for (size_t c = 0; c < widths.size(); ++c) {
    const bool right = table.columns[c].right;
    heading += " " + padded(markdown_cell(table.columns[c].heading), widths[c], right) + " |";
    rule += right ? std::string(widths[c] + 1, '-') + ":|" : std::string(widths[c] + 2, '-') + "|";
  }
  for (const auto& row : table.rows) {
    body += "|";
    for (size_t c = 0; c < widths.size(); ++c)
      body += " " + padded(markdown_cell(row[c]), widths[c], table.columns[c].right) + " |";
    body += "\n";
  }
  const std::string caption = table.caption.empty() ? "" : markdown_text(table.caption) + "\n\n";
  return caption + heading + "\n" + rule + "\n" + body;
}

// How a table is laid out on pages of the class `article` at 10 pt, 345 pt wide and 550 pt high. A
// character takes 5 to 7 pt, a line 12 pt.
struct LatexLayout {
  const char* environment = "table";
  const char* scaled_to = "";  // length; "": as it is
  size_t rows_per_page = 40;
};

LatexLayout latex_layout(const Table& table) {
  size_t width = 0;  // characters, with two blanks between columns
  for (const size_t column : widths_of(table, [](const std::string& text) { return text; }))
    width += column + 2;
  if (width <= 55) return {};
  if (width <= 110) return {"table", "\\textwidth", 36};
  return {"sidewaystable", "\\textheight", 24};
}

std::string latex_row(const std::vector<std::string>& cells) {
  std::string text;
  for (const std::string& cell : cells)
    text += (&cell == &cells[0] ? "" : " & ") + latex_cell(cell);
  return text + " \\\\\n";
}

// One float for each page of rows, with the headings.
std::string latex_table(const Table& table) {
  const LatexLayout layout = latex_layout(table);
  const std::string environment = layout.environment, scaled_to = layout.scaled_to;
  std::string alignment;
  for (const Column& column : table.columns) alignment += column.right ? 'r' : 'l';
  const auto lines = lines_of(table);
  std::string text;
  size_t next = 1;
  do {
    text += "\\begin{" + environment + "}\n\\caption{" +
            latex_cell(next == 1 ? table.caption : "Continued: " + table.caption) + "}\n" +
            (scaled_to.empty() ? "" : "\\resizebox{" + scaled_to + "}{!}{%\n") +
            "\\begin{tabular}{" + alignment + "}\n\\hline\n" + latex_row(lines[0]) + "\\hline\n";
    for (const size_t end = std::min(lines.size(), next + layout.rows_per_page); next < end; ++next)
      text += latex_row(lines[next]);
    text += std::string("\\hline\n\\end{tabular}") + (scaled_to.empty() ? "" : "}") + "\n\\end{" +
            environment + "}\n";
  } while (next < lines.size());
  return text;
}

// Comment with the packages that the document has to load; "" where it needs none.
std::string latex_packages(const std::vector<Table>& tables) {
  bool scaled = false, rotated = false;
  for (const Table& table : tables) {
    const LatexLayout layout = latex_layout(table);
    scaled = scaled || layout.scaled_to[0] != '\0';
    rotated = rotated || std::string(layout.environment) == "sidewaystable";
  }
  if (!scaled) return "";
  return std::string("% The preamble needs \\usepackage{graphicx}") +
         (rotated ? " and \\usepackage{rotating}" : "") + "\n";
}

std::string joined(const std::vector<Table>& tables,
                   const std::function<std::string(const Table&)>& format) {
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + format(table);
  return text;
}

}  // namespace

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0';
}

const Table& for_programs(const Table& table) {
  return table.for_programs.empty() ? table : table.for_programs.front();
}

std::string format_markdown(const std::vector<Table>& tables) {
  return joined(tables, markdown_table);
}

std::string format_csv(const std::vector<Table>& tables) {
  std::vector<std::vector<std::string>> lines(1);  // headings, rows of all tables
  for (const Table& whole : tables) {
    const Table& table = for_programs(whole);
    std::vector<std::string>& headings = lines.front();
    // Where each column of this table stands; two with one heading are two columns.
    std::vector<size_t> places;
    for (const Column& column : table.columns) {
      size_t place = 0;
      while (place < headings.size() &&
             (headings[place] != column.heading || contains(places, place)))
        ++place;
      if (place == headings.size()) headings.push_back(column.heading);
      places.push_back(place);
    }
    for (const auto& row : table.rows) {
      std::vector<std::string>& line = lines.emplace_back(lines.front().size());
      for (size_t c = 0; c < row.size(); ++c) line[places[c]] = row[c];
    }
  }
  std::string text;
  for (std::vector<std::string>& line : lines) {
    line.resize(lines.front().size());  // columns that only later tables have
    for (size_t c = 0; c < line.size(); ++c) text += (c == 0 ? "" : ",") + csv_cell(line[c]);
    text += "\n";
  }
  return text;
}

std::string format_latex(const std::vector<Table>& tables) {
  return latex_packages(tables) + joined(tables, latex_table);
}

std::string format_plain(const Table& table) {
  std::vector<std::vector<std::string>> lines = lines_of(table);
  std::vector<size_t> widths(table.columns.size(), 0);
  for (const auto& line : lines)
    for (size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], width_of(line[c]));
  const auto is_empty = [](const std::string& text) { return text.empty(); };
  if (std::all_of(lines[0].begin(), lines[0].end(), is_empty)) lines.erase(lines.begin());
  std::string text;
  for (const auto& line : lines) {
    std::string one;
    for (size_t c = 0; c < widths.size(); ++c)
      one += (c == 0 ? "" : "  ") + padded(line[c], widths[c], table.columns[c].right);
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace gptbench
