#include "measure/binding.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"
#include "measure/system_info.h"

namespace gptbench {
namespace {

constexpr size_t places_shown = 4;    // of the first node
constexpr size_t warnings_shown = 4;  // of all nodes
constexpr const char* nothing = "-";  // a field without a value, on the way between ranks
constexpr int max_numa_nodes = 1024;  // Linux's CONFIG_NODES_SHIFT is at most 10

// The lowest processor of the core that `processor` is a hardware thread of.
int core_of(int processor) {
  const std::vector<int> siblings =
      numbers_of_list(first_line("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                                 "/topology/thread_siblings_list"));
  return siblings.empty() ? processor : siblings.front();
}

std::vector<int> numa_nodes_of(const std::vector<int>& processors) {
  std::vector<int> nodes;
  for (const int node : numbers_of_list(first_line("/sys/devices/system/node/online"))) {
    if (node >= max_numa_nodes) break;
    const std::vector<int> of_node = numbers_of_list(
        first_line("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"));
    const auto inside = [&](int processor) {
      return std::binary_search(of_node.begin(), of_node.end(), processor);
    };
    if (std::any_of(processors.begin(), processors.end(), inside)) nodes.push_back(node);
  }
  return nodes;
}

std::string visible_gpus() {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

// A list of numbers that leaves room for words beside it in a line.
std::string short_list(const std::vector<int>& numbers) {
  constexpr size_t longest = 24;
  const std::string list = core_list(numbers);
  if (list.size() <= longest) return list;
  return list.substr(0, list.rfind(',', longest)) + ",...";
}

// lists: core_list, or short_list where the text is to be read.
std::string place_of(const RankBinding& b, std::string (*list)(const std::vector<int>&)) {
  std::string place = "processors " + list(b.processors);
  if (b.cores.size() != b.processors.size())
    place += " (" + std::to_string(b.cores.size()) + (b.cores.size() == 1 ? " core)" : " cores)");
  if (!b.numa_nodes.empty()) place += ", NUMA " + list(b.numa_nodes);
  if (!b.gpus.empty()) place += ", GPU " + b.gpus;
  return place;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + short_list(ranks);
}

struct NodeRank {
  int rank;
  const RankBinding* binding;
};

// A warning for each set of cores of the node that its own ranks overfill; the smallest such sets,
// as a set around an overfilled one need not be named again.
std::vector<std::string> overfilled(int64_t node, const std::vector<NodeRank>& ranks) {
  std::set<std::vector<int>> sets;
  std::set<int> all;
  for (const NodeRank& r : ranks) {
    if (r.binding->cores.empty()) continue;
    sets.insert(r.binding->cores);
    all.insert(r.binding->cores.begin(), r.binding->cores.end());
  }
  sets.insert({all.begin(), all.end()});
  std::vector<std::vector<int>> by_size(sets.begin(), sets.end());
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<std::string> warnings;
  std::vector<std::vector<int>> named;
  for (const std::vector<int>& cores : by_size) {
    const auto within = [](const std::vector<int>& part, const std::vector<int>& whole) {
      return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
    };
    if (std::any_of(named.begin(), named.end(),
                    [&](const std::vector<int>& part) { return within(part, cores); }))
      continue;
    std::vector<int> holders;
    int64_t threads = 0;
    for (const NodeRank& r : ranks)
      if (!r.binding->cores.empty() && within(r.binding->cores, cores)) {
        holders.push_back(r.rank);
        threads += r.binding->threads;
      }
    if (threads <= static_cast<int64_t>(cores.size())) continue;
    named.push_back(cores);
    warnings.push_back(hanging(
        "Warning: ", "node " + std::to_string(node) + ": " + std::to_string(threads) +
                         (threads == 1 ? " thread" : " threads") + " of " + ranks_text(holders) +
                         " on " + std::to_string(cores.size()) +
                         (cores.size() == 1 ? " core (" : " cores (") + short_list(cores) + ")"));
  }
  return warnings;
}

// Ranks that are bound alike.
struct Place {
  const RankBinding* binding;
  std::vector<int> ranks;
};

// In the order of the first rank of each.
std::vector<Place> places_of(const std::vector<NodeRank>& ranks) {
  std::vector<Place> places;
  for (const NodeRank& r : ranks) {
    const std::string place = place_of(*r.binding, core_list);
    const auto alike = std::find_if(places.begin(), places.end(), [&](const Place& other) {
      return place_of(*other.binding, core_list) == place;
    });
    if (alike != places.end())
      alike->ranks.push_back(r.rank);
    else
      places.push_back({r.binding, {r.rank}});
  }
  return places;
}

// Bindings of a node without what tells ranks or nodes apart. GPUs that are named by their UUID are
// counted: no two nodes have the same ones.
std::string layout_of(const std::vector<NodeRank>& ranks) {
  std::string layout;
  for (const NodeRank& r : ranks) {
    RankBinding binding = *r.binding;
    if (binding.gpus.find_first_not_of("-0123456789,") != std::string::npos)
      binding.gpus = "x" + std::to_string(split(binding.gpus, ',').size());
    layout += place_of(binding, core_list) + "\n";
  }
  return layout;
}

}  // namespace

RankBinding own_binding(int64_t node, int64_t threads) {
  RankBinding own;
  own.node = node;
  own.threads = threads;
  own.processors = numbers_of_list(system_info().binding);
  std::set<int> cores;
  for (const int processor : own.processors) cores.insert(core_of(processor));
  own.cores.assign(cores.begin(), cores.end());
  own.numa_nodes = numa_nodes_of(own.processors);
  own.gpus = visible_gpus();
  return own;
}

std::string encode_binding(const RankBinding& b) {
  std::string line = std::to_string(b.node) + ";" + std::to_string(b.threads);
  for (const std::string& field :
       {core_list(b.processors), core_list(b.cores), core_list(b.numa_nodes), b.gpus})
    line += ";" + (field.empty() ? std::string(nothing) : field);
  return line;
}

RankBinding decode_binding(const std::string& line) {
  std::vector<std::string> parts = split(line, ';');
  parts.resize(6);
  for (std::string& part : parts)
    if (part == nothing) part.clear();
  RankBinding b;
  b.node = std::atoll(parts[0].c_str());
  b.threads = std::atoll(parts[1].c_str());
  b.processors = numbers_of_list(parts[2]);
  b.cores = numbers_of_list(parts[3]);
  b.numa_nodes = numbers_of_list(parts[4]);
  b.gpus = parts[5];
  return b;
}

std::string binding_report(const std::vector<RankBinding>& ranks) {
  std::map<int64_t, std::vector<NodeRank>> nodes;
  for (size_t r = 0; r < ranks.size(); ++r)
    nodes[ranks[r].node].push_back({static_cast<int>(r), &ranks[r]});
  if (nodes.empty()) return "";

  const auto& [first_node, first] = *nodes.begin();
  const std::vector<Place> places = places_of(first);
  std::string lead = "Binding, node " + std::to_string(first_node);
  lead.resize(std::max(lead.size() + 2, size_t{18}), ' ');
  const std::string indent(lead.size(), ' ');
  std::string report;
  size_t left_out = first.size();
  for (size_t i = 0; i < std::min(places.size(), places_shown); ++i) {
    report += hanging(i == 0 ? lead : indent, ranks_text(places[i].ranks) + ": " +
                                                  place_of(*places[i].binding, short_list));
    left_out -= places[i].ranks.size();
  }
  if (left_out > 0) report += indent + "and " + std::to_string(left_out) + " ranks more\n";
  if (nodes.size() > 1) {
    const std::string layout = layout_of(first);
    const auto different = std::count_if(nodes.begin(), nodes.end(), [&](const auto& node) {
      return layout_of(node.second) != layout;
    });
    report += indent + (different == 0 ? "the other nodes alike\n"
                                       : std::to_string(different) +
                                             (different == 1 ? " node differs" : " nodes differ") +
                                             ", see /provenance\n");
  }
  std::vector<std::string> warnings;
  for (const auto& [node, of_node] : nodes)
    for (std::string& warning : overfilled(node, of_node)) warnings.push_back(std::move(warning));
  for (size_t i = 0; i < std::min(warnings.size(), warnings_shown); ++i) report += warnings[i];
  if (warnings.size() > warnings_shown)
    report += "Warning: so do " + std::to_string(warnings.size() - warnings_shown) + " more\n";
  if (!warnings.empty())
    report += "         times include waits for cores; give each rank its own: doc/cluster.md\n";
  return report;
}

}  // namespace gptbench
