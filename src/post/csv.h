// Comma-separated values, as RFC 4180 describes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gptbench {

struct CsvRow {
  size_t line = 0;  // of the file, from 1
  std::vector<std::string> fields;
};

// Rows of `text`; a field in double quotes may hold commas, line breaks and doubled quotes, one
// without is trimmed. Lines that are empty or begin with # are passed over, unless their first
// cell is one that spreadsheets (#VALUE!) or published tables (# GPUs) write so. Throws
// Error(Exit::usage) naming `path` and line where a quote is not closed.
std::vector<CsvRow> parse_csv(const std::string& path, const std::string& text);

}  // namespace gptbench
