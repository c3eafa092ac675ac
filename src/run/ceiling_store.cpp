#include "run/ceiling_store.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "io/file_bytes.h"

namespace gptbench {
namespace {

constexpr int64_t max_store_bytes = 1 << 20;

std::string store_path() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string own = variable("GPTBENCH_CEILINGS");
  if (!own.empty()) return own == "none" ? "" : own;
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  return cache.empty() ? "" : cache + "/gptbench/gemm_ceilings";
}

// Lines "key<TAB>value value ...", oldest first; none where the file cannot be read.
std::vector<std::string> read_lines(const std::string& path) {
  try {
    const Bytes bytes = read_bytes(path, max_store_bytes);
    return split(std::string(bytes.begin(), bytes.end()), '\n');
  } catch (const Error&) {
    return {};
  }
}

bool has_key(const std::string& line, const std::string& key) {
  return line.size() > key.size() && line.compare(0, key.size(), key) == 0 &&
         line[key.size()] == '\t';
}

}  // namespace

CeilingStore::CeilingStore() : path_(store_path()) {}

std::vector<double> CeilingStore::read(const std::string& key) const {
  std::vector<double> values;
  if (path_.empty()) return values;
  for (const std::string& line : read_lines(path_))
    if (has_key(line, key))
      for (const std::string& word : split(line.substr(key.size() + 1), ' '))
        if (const double value = std::atof(word.c_str()); value > 0.0 && std::isfinite(value))
          values.push_back(value);
  return values;
}

void CeilingStore::add(const std::string& key, double tflops) const {
  if (path_.empty()) return;
  std::vector<double> values = read(key);
  values.push_back(tflops);
  while (values.size() > remembered_runs) values.erase(values.begin());
  std::string line = key + "\t";
  for (const double value : values) line += printed("%.6g ", value);
  std::vector<std::string> lines = {line};  // those that were used last come first
  size_t bytes = line.size();
  for (const std::string& other : read_lines(path_)) {
    bytes += other.size() + 1;
    if (!has_key(other, key) && bytes < max_store_bytes / 2) lines.push_back(other);
  }
  try {
    const size_t slash = path_.rfind('/');
    if (slash != std::string::npos) create_directories(path_.substr(0, slash));
    write_output(path_, join(lines, "\n") + "\n");
  } catch (const Error&) {
    return;  // a home that is full or read-only: the next run has less to remember
  }
}

}  // namespace gptbench
