#include "post/naming.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "post/style.h"

namespace gptbench {
namespace {

// "tp2 pp2": the sizes that are not 1, or "data parallel".
std::string layout_of(const RunView& run) {
  std::vector<std::string> sizes;
  for (const auto& [name, size] : {std::pair{"tp", run.deck().tensor_parallel()},
                                   std::pair{"pp", run.deck().pipeline_parallel()},
                                   std::pair{"cp", run.deck().context_parallel()}})
    if (size > 1) sizes.push_back(name + std::to_string(size));
  return sizes.empty() ? "data parallel" : join(sizes, " ");
}

std::string ranks_text(const RunView& run) {
  const int64_t ranks = run.summary().world_size;
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

std::vector<std::string> parts_of(const RunView& run, bool over_length) {
  // A published point without a model is its series.
  if (run.is_point())
    return std::vector<std::string>{
        "published: " + run.deck().text("run", "name"), "", "", "", "", "", "", ""};
  return std::vector<std::string>{
      run.source_mark() + (over_length ? run.model_name_of_any_length() : run.model_name()),
      over_length ? ranks_text(run) : "sequence " + std::to_string(run.deck().seq_length()),
      run.deck().text("precision", "compute", "fp32"),
      layout_of(run),
      "ZeRO " + std::to_string(run.deck().zero_stage()),
      run.deck().checkpoints() ? run.deck().checkpointing() + " recomputation" : "no recomputation",
      "micro-batch " + std::to_string(run.deck().micro_batch()),
      run.device_name()};
}

// Keys of the layout in which runs differ although all of `parts` and `x` are equal: appended.
void add_varied_keys(std::vector<std::vector<std::string>>& parts, const Runs& runs,
                     const std::vector<std::string>& x) {
  std::vector<std::string> known = x;
  for (size_t r = 0; r < runs.size(); ++r) known[r] += "|" + join(parts[r], "|");
  for (const ConfigEntry& entry : runs.front().record().config) {
    if (!may_decide_speed(entry) || entry.key == "device_memory_gib") continue;
    std::vector<std::string> cells;
    for (const RunView& run : runs) cells.push_back(key_cell(run, entry.group, entry.key));
    if (follows(cells, known)) continue;
    for (size_t r = 0; r < runs.size(); ++r) {
      parts[r].push_back(entry.key + " " + cells[r]);
      known[r] += "|" + cells[r];
    }
  }
}

}  // namespace

bool may_decide_speed(const ConfigEntry& entry) {
  static const std::set<std::string> groups = {"model", "parallel", "precision", "memory"};
  static const std::set<std::string> keys_of_run = {
      "device", "comm", "mpi_arrays", "algorithms", "attention", "cuda_graph", "deterministic"};
  return groups.count(entry.group) > 0 ||
         (entry.group == "run" && keys_of_run.count(entry.key) > 0);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

Naming naming_of(const Runs& runs, bool over_length) {
  Naming naming;
  std::vector<std::vector<std::string>> parts;
  std::vector<std::string> x;
  for (const RunView& run : runs) {
    parts.push_back(parts_of(run, over_length));
    x.push_back(std::to_string(over_length ? run.deck().seq_length() : run.summary().world_size));
  }
  naming.names.resize(runs.size());
  if (runs.empty()) return naming;
  add_varied_keys(parts, runs, x);
  std::vector<std::string> shared;
  for (size_t p = 0; p < parts.front().size(); ++p) {
    std::set<std::string> values;
    for (const auto& of_run : parts) values.insert(of_run[p]);
    if (values.size() == 1) {
      if (!values.begin()->empty()) shared.push_back(*values.begin());
      continue;
    }
    for (size_t r = 0; r < runs.size(); ++r)
      if (!parts[r][p].empty())
        naming.names[r] += (naming.names[r].empty() ? "" : ", ") + parts[r][p];
  }
  naming.shared = join(shared, ", ");
  return naming;
}

std::string subtitle_of(const std::string& shared, const Runs& runs) {
  std::set<std::string> machines, dates;
  for (const RunView& run : runs) {
    if (run.is_published()) continue;
    if (!run.record().machine.empty()) machines.insert(run.record().machine);
    if (!run.record().date_utc.empty()) dates.insert(run.record().date_utc.substr(0, 10));
  }
  std::string text = shared;
  const auto add = [&](const std::string& part) {
    if (!part.empty() && text.find(part) == std::string::npos)
      text += (text.empty() ? "" : "; ") + part;
  };
  add(join({machines.begin(), machines.end()}, ", "));
  if (!dates.empty())
    add(*dates.begin() + (dates.size() > 1 ? " to " + *dates.rbegin() : std::string()));
  return text;
}

std::string subtitle_of(const Runs& runs) {
  return subtitle_of(naming_of(runs, false).shared, runs);
}

std::vector<std::string> labels_of(const Runs& runs) {
  std::vector<std::string> bases, labels;
  for (const RunView& run : runs)
    bases.push_back((run.is_projected() ? run.source_mark() : "") +
                    run.deck().text("run", "name", "run") + ", " + ranks_text(run));
  const bool unique = std::set<std::string>(bases.begin(), bases.end()).size() == bases.size();
  const Naming naming = unique ? Naming{} : naming_of(runs, false);
  std::map<std::string, int> counts;
  for (size_t r = 0; r < runs.size(); ++r) {
    std::string label = bases[r];
    if (!unique && !naming.names[r].empty()) label += ", " + naming.names[r];
    if (!runs[r].counts()) label += ", " + runs[r].outcome();
    const int count = ++counts[label];
    labels.push_back(label + (count > 1 ? " (" + std::to_string(count) + ")" : ""));
  }
  return labels;
}

std::string listed(std::vector<std::string> names) {
  constexpr size_t most = 8;
  if (names.size() > most) {
    const size_t left_out = names.size() - (most - 1);
    names.resize(most - 1);
    names.push_back("and " + std::to_string(left_out) + " more");
  }
  return join(names, "; ");
}

}  // namespace gptbench
