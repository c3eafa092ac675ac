#include "post/table.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <functional>

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

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0';
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
  std::string escaped;
  for (const char c : printable(text)) {  // its backslashes are text, too
    if (c == '\\')
      escaped += "\\textbackslash{}";
    else if (c == '~')
      escaped += "\\textasciitilde{}";
    else if (c == '^')
      escaped += "\\textasciicircum{}";
    else if (c == '<')
      escaped += "\\textless{}";
    else if (c == '>')
      escaped += "\\textgreater{}";
    else if (c == '|')
      escaped += "\\textbar{}";
    else if (c == '[' || c == ']' || c == '*')  // an argument of \\ where a row begins with them
      escaped += std::string("{") + c + "}";
    else if (c == '\n')
      escaped += ", ";
    else {
      if (std::string("&%$#_{}").find(c) != std::string::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
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

std::string latex_table(const Table& table) {
  std::string layout, text;
  for (const Column& column : table.columns) layout += column.right ? 'r' : 'l';
  text = "\\begin{table}\n\\caption{" + latex_cell(table.caption) + "}\n\\begin{tabular}{" +
         layout + "}\n\\hline\n";
  const auto line = [&](const std::function<std::string(size_t)>& cell) {
    for (size_t c = 0; c < table.columns.size(); ++c)
      text += (c == 0 ? "" : " & ") + latex_cell(cell(c));
    text += " \\\\\n";
  };
  line([&](size_t c) { return table.columns[c].heading; });
  text += "\\hline\n";
  for (const auto& row : table.rows) line([&](size_t c) { return row[c]; });
  return text + "\\hline\n\\end{tabular}\n\\end{table}\n";
}

std::string joined(const std::vector<Table>& tables,
                   const std::function<std::string(const Table&)>& format) {
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + format(table);
  return text;
}

}  // namespace

std::string format_markdown(const std::vector<Table>& tables) {
  return joined(tables, markdown_table);
}

std::string format_csv(const std::vector<Table>& tables) {
  return joined(tables, [&](const Table& table) {
    std::string text;
    if (tables.size() > 1) text += "# " + replace_all(table.caption, "\n", " ") + "\n";
    for (size_t c = 0; c < table.columns.size(); ++c)
      text += (c == 0 ? "" : ",") + csv_cell(table.columns[c].heading);
    text += "\n";
    for (const auto& row : table.rows) {
      for (size_t c = 0; c < row.size(); ++c) text += (c == 0 ? "" : ",") + csv_cell(row[c]);
      text += "\n";
    }
    return text;
  });
}

std::string format_latex(const std::vector<Table>& tables) {
  return joined(tables, latex_table);
}

std::string format_plain(const Table& table) {
  std::vector<size_t> widths(table.columns.size(), 0);
  for (size_t c = 0; c < widths.size(); ++c) {
    widths[c] = width_of(table.columns[c].heading);
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  const auto line = [&](const std::function<std::string(size_t)>& cell) {
    std::string one;
    for (size_t c = 0; c < widths.size(); ++c)
      one += (c == 0 ? "" : "  ") + padded(cell(c), widths[c], table.columns[c].right);
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  };
  if (std::any_of(table.columns.begin(), table.columns.end(),
                  [](const Column& column) { return !column.heading.empty(); }))
    line([&](size_t c) { return table.columns[c].heading; });
  for (const auto& row : table.rows) line([&](size_t c) { return row[c]; });
  return text;
}

}  // namespace gptbench
