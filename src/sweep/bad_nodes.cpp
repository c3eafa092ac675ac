#include "sweep/bad_nodes.h"

#include <regex>

#include "base/text.h"

namespace gptbench {
namespace {

constexpr size_t longest_line = 4096;  // that is searched

// The name that Slurm knows: a host without its domain, but an address as a whole.
std::string node_of(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

}  // namespace

std::set<std::string> blamed_nodes(const std::string& output) {
  // Names of hosts alone: they become words of a command.
  static const std::regex blame(
      "(?:rank [0-9]+ on ([A-Za-z0-9][A-Za-z0-9._-]*)"
      "(?: has been (?:dead|stopped)|, and its node, has been silent)"
      "|Node failure on ([A-Za-z0-9][A-Za-z0-9._-]*))");
  std::set<std::string> nodes;
  for (const std::string& line : split(output, '\n')) {
    if (line.size() > longest_line) continue;
    for (std::sregex_iterator match(line.begin(), line.end(), blame), end; match != end; ++match)
      nodes.insert((*match)[2].matched ? (*match)[2].str() : node_of((*match)[1].str()));
  }
  return nodes;
}

std::string node_of_odd_replica(const std::string& reason) {
  static const std::regex differs("rank ([0-9]+) on ([A-Za-z0-9][A-Za-z0-9._-]*) differs in ");
  if (reason.size() > longest_line) return "";
  std::map<std::string, std::string> nodes;  // by rank, which a repetition of the steps names again
  for (std::sregex_iterator match(reason.begin(), reason.end(), differs), end; match != end;
       ++match)
    nodes[(*match)[1].str()] = node_of((*match)[2].str());
  return nodes.size() == 1 ? nodes.begin()->second : "";
}

std::vector<std::string> BadNodes::note(const std::string& row, const std::string& output,
                                        const std::string& reason) {
  std::set<std::string> blamed = blamed_nodes(output);
  if (const std::string odd = node_of_odd_replica(reason); !odd.empty()) blamed.insert(odd);
  std::vector<std::string> left_out;
  for (const std::string& node : blamed) {
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
