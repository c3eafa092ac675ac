#include "data/data_paths.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* wildcards = "*?[";

bool exists(const std::string& name) {
  std::error_code error;  // of a folder that may not be entered: nothing is there
  return fs::exists(name, error) || fs::exists(name + ".bin", error);
}

// Sorted; empty where nothing matches.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> names;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_pattern(const std::string& name) {
  return !exists(name) && name.find_first_of(wildcards) != std::string::npos;
}

std::vector<std::string> names_in(const std::string& path) {
  return exists(path) ? std::vector<std::string>{path} : split(path, ',');
}

// A pattern that matches `name` alone.
std::string quoted(const std::string& name) {
  std::string pattern;
  for (const char c : name)
    pattern += std::string(wildcards).find(c) != std::string::npos || c == '\\'
                   ? std::string("\\") + c
                   : std::string(1, c);
  return pattern;
}

std::string find_one(const std::string& name, const std::string& folder) {
  if (fs::path(name).is_absolute() || exists(name)) return name;
  const std::string beside = (fs::path(folder) / name).string();
  if (exists(beside) || !is_pattern(name)) return exists(beside) ? beside : name;
  const std::string pattern = (fs::path(quoted(folder)) / name).string();
  return matches(name).empty() && !matches(pattern).empty() ? pattern : name;
}

}  // namespace

std::string find_data(const std::string& path, const std::string& folder) {
  if (path.empty()) return path;
  const std::string beside = (fs::path(folder) / path).string();
  if (!fs::path(path).is_absolute() && !exists(path) && exists(beside)) return beside;
  std::vector<std::string> names = names_in(path);
  for (std::string& name : names) name = find_one(name, folder);
  return join(names, ",");
}

std::vector<std::string> data_files(const std::string& path) {
  std::vector<std::string> files;
  for (const std::string& name : names_in(path)) {
    if (!is_pattern(name)) {
      files.push_back(name);
      continue;
    }
    const std::vector<std::string> found = matches(name);
    if (found.empty())
      throw Error(Exit::io, "data file '" + name + "' is a pattern that matches no file");
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace gptbench
