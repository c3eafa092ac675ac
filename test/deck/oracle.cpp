#include "oracle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "deck/namelist.h"
#include "deck/values.h"

namespace gptbench {
namespace {

// Runs the Fortran program on texts[first], texts[first + 1], ... until its library crashes on one,
// which then has no reading; returns the readings up to there.
std::vector<Reading> run_oracle(const std::string& folder, size_t first, size_t count) {
  std::ofstream list(folder + "/list");
  for (size_t n = first; n < count; ++n) list << folder << "/" << n << ".in\n";
  list.close();
  const std::string command = std::string(GPTBENCH_ORACLE) + " " + folder + "/list " + folder +
                              "/out 2> " + folder + "/errors";
  const bool completed = std::system(command.c_str()) == 0;

  std::vector<Reading> readings;
  std::ifstream out(folder + "/out");
  std::string line;
  std::string group;
  while (std::getline(out, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "file") {
      readings.emplace_back();
    } else if (word == "group") {
      words >> group >> readings.back()[group].status;
    } else {
      readings.back()[group].values[word] = line.substr(word.size() + 1);
    }
  }
  const bool is_last_partial = !readings.empty() && readings.back().count("checkpoint") == 0;
  if (!completed && is_last_partial) readings.pop_back();
  return readings;
}

// The group &probe as namelist.cpp and values.cpp read it; throws Error.
Values read_probe(const std::string& text) {
  static const std::map<std::string, int64_t> sizes = {{"i", 1},  {"j", 1},  {"ia", 3}, {"x", 1},
                                                       {"y", 1},  {"xa", 4}, {"l", 1},  {"m", 1},
                                                       {"la", 2}, {"s", 1},  {"u", 1},  {"sa", 3}};
  Values values;
  for (const auto& [key, size] : sizes) {
    for (int64_t n = 1; n <= size; ++n) {
      const std::string name = size == 1 ? key : key + "(" + std::to_string(n) + ")";
      const char type = key[0];
      values[name] = type == 'i' || type == 'j'   ? "-1"
                     : type == 'x' || type == 'y' ? bits_of(-1.0)
                     : type == 'l'                ? "F"
                     : type == 'm'                ? "T"
                                                  : "[default]";
    }
  }
  const Source source{"probe"};
  const std::vector<Group> groups = parse_namelist(source, text);
  if (groups.size() != 1 || groups[0].name != "probe") source.fail({}, "no group &probe");
  for (const Assignment& assignment : groups[0].assignments) {
    const auto size = sizes.find(assignment.key);
    if (size == sizes.end()) source.fail(assignment.place, "unknown key");
    for (const Element& element : distribute(source, assignment, size->second, size->second > 1)) {
      const Token& token = *element.token;
      const std::string name = size->second == 1
                                   ? assignment.key
                                   : assignment.key + "(" + std::to_string(element.index) + ")";
      switch (assignment.key[0]) {
        case 'i':
        case 'j':
          values[name] = std::to_string(to_integer(source, token, ""));
          break;
        case 'x':
        case 'y':
          values[name] = bits_of(to_real(source, token, ""));
          break;
        case 'l':
        case 'm':
          values[name] = to_logical(source, token, "") ? "T" : "F";
          break;
        default:
          values[name] = "[" + to_string(source, token, "") + "]";
      }
    }
  }
  return values;
}

}  // namespace

std::vector<Reading> read_with_gfortran(const std::vector<std::string>& texts) {
  const std::string folder = testing::TempDir() + "gptbench_oracle_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  for (size_t n = 0; n < texts.size(); ++n) {
    std::ofstream(folder + "/" + std::to_string(n) + ".in", std::ios::binary) << texts[n];
  }
  std::vector<Reading> readings;
  while (readings.size() < texts.size()) {
    for (const Reading& reading : run_oracle(folder, readings.size(), texts.size())) {
      readings.push_back(reading);
    }
    if (readings.size() < texts.size()) {
      readings.emplace_back();
      readings.back()["probe"].status = crashed;
    }
  }
  std::filesystem::remove_all(folder);
  return readings;
}

bool is_studied_gfortran() {
  return std::atoi(GPTBENCH_GFORTRAN_VERSION) == 12;
}

bool semicolon_separates() {
  static const bool separates = [] {
    const GroupReading reading = read_with_gfortran({"&probe ia=1;2;3/\n"})[0].at("probe");
    return reading.status == 0 && reading.values.at("ia(3)") == "3";
  }();
  return separates;
}

std::string bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char text[20];
  std::snprintf(text, sizeof text, "%016llX", static_cast<unsigned long long>(bits));
  return text;
}

bool accepts(const std::string& text, Values& values, std::string& message) {
  try {
    values = read_probe(text);
    return true;
  } catch (const Error& error) {
    message = error.what();
    return false;
  }
}

void expect_same(const std::string& text, const Values& ours, const Values& gfortran) {
  for (const auto& [key, value] : gfortran) {
    const auto mine = ours.find(key);
    ASSERT_NE(mine, ours.end()) << key;
    EXPECT_EQ(mine->second, value) << key << " in\n" << text;
  }
}

}  // namespace gptbench
