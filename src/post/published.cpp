#include "post/published.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "io/file_bytes.h"

namespace gptbench {
namespace {

constexpr int64_t largest_file_bytes = 16 << 20;

double positive(const std::string& text, const std::string& where) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(value > 0.0 && value < 1e300))
    throw Error(Exit::usage, where + ": '" + text + "' is no positive number");
  return value;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields = split(line, ',');
  for (std::string& field : fields) field = trim(field);
  return fields;
}

}  // namespace

Published read_published(const std::string& path) {
  const Bytes bytes = read_bytes(path, largest_file_bytes);
  Published published;
  std::vector<std::string> names;
  size_t number = 0;
  for (const std::string& raw : split(std::string(bytes.begin(), bytes.end()), '\n')) {
    ++number;
    const std::string line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = path + ":" + std::to_string(number);
    const std::vector<std::string> fields = fields_of(line);
    const auto column = [&](const std::string& name) {
      return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    if (names.empty()) {
      names = fields;
      for (const char* name : {"ranks", "tokens_per_s"})
        if (column(name) == names.size())
          throw Error(Exit::usage, where + ": no column '" + std::string(name) +
                                       "'; the first line names the columns series, ranks and "
                                       "tokens_per_s");
      continue;
    }
    if (fields.size() != names.size())
      throw Error(Exit::usage, where + ": " + std::to_string(fields.size()) +
                                   " fields, the first " + "line names " +
                                   std::to_string(names.size()));
    const size_t series_column = column("series");
    const std::string series =
        series_column == names.size() ? std::string("published") : fields[series_column];
    auto at = std::find_if(published.begin(), published.end(),
                           [&](const PublishedSeries& each) { return each.name == series; });
    if (at == published.end()) at = published.insert(at, {series, {}});
    at->points.push_back({positive(fields[column("ranks")], where),
                          positive(fields[column("tokens_per_s")], where)});
  }
  for (PublishedSeries& series : published)
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  if (published.empty()) throw Error(Exit::usage, path + ": no published points");
  return published;
}

}  // namespace gptbench
