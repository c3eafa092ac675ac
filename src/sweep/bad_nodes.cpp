#include "sweep/bad_nodes.h"

#include <regex>

#include "base/text.h"

namespace gptbench {

std::set<std::string> blamed_nodes(const std::string& output) {
  // Names of hosts alone: they become words of a command.
  static const std::regex blame(
      "(?:rank [0-9]+ on ([A-Za-z0-9][A-Za-z0-9._-]*)"
      "(?: has been (?:dead|stopped)|, and its node, has been silent)"
      "|Node failure on ([A-Za-z0-9][A-Za-z0-9._-]*))");
  std::set<std::string> nodes;
  for (const std::string& line : split(output, '\n')) {
    if (line.size() > 4096) continue;
    for (std::sregex_iterator match(line.begin(), line.end(), blame), end; match != end; ++match) {
      const std::string host = (*match)[1].str();
      const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
      nodes.insert((*match)[2].matched ? (*match)[2].str()
                   : is_address        ? host
                                       : host.substr(0, host.find('.')));
    }
  }
  return nodes;
}

std::vector<std::string> BadNodes::note(const std::string& row, const std::string& output) {
  std::vector<std::string> left_out;
  for (const std::string& node : blamed_nodes(output)) {
    rows_[node].push_back(row);
    if (rows_[node].size() == too_often) left_out.push_back(node);
  }
  return left_out;
}

std::string BadNodes::left_out(int64_t allocated, int64_t needed) const {
  std::vector<std::string> nodes;
  for (const auto& [node, rows] : rows_)
    if (rows.size() >= too_often) nodes.push_back(node);
  const bool too_many = allocated > 0 && allocated - static_cast<int64_t>(nodes.size()) < needed;
  return too_many ? "" : join(nodes, ",");
}

}  // namespace gptbench
