// The table of &sweep's keys and how they are read.
#include <algorithm>
#include <limits>
#include <map>

#include "base/text.h"
#include "deck/binder.h"
#include "deck/values.h"
#include "sweep/config.h"

namespace gptbench {
namespace {

constexpr int64_t most_dimensions = 32;
constexpr int64_t most_rows = 10000;

SweepKey row_of(const char* name, KeyType type, const char* unit, const char* doc) {
  SweepKey row;
  row.key.group = sweep_group;
  row.key.name = name;
  row.key.type = type;
  row.key.unit = unit;
  row.key.doc = doc;
  return row;
}

SweepKey integer(int64_t SweepConfig::*field, const char* name, const char* unit, double max,
                 const char* doc) {
  SweepKey row = row_of(name, KeyType::integer, unit, doc);
  row.key.max = max;
  row.field = field;
  return row;
}

SweepKey real(double SweepConfig::*field, const char* name, const char* unit, const char* doc) {
  SweepKey row = row_of(name, KeyType::real, unit, doc);
  row.key.max = std::numeric_limits<double>::max();
  row.field = field;
  return row;
}

SweepKey string(std::string SweepConfig::*field, const char* name, std::vector<std::string> allowed,
                const char* doc) {
  SweepKey row = row_of(name, KeyType::string, "", doc);
  row.key.allowed = std::move(allowed);
  row.field = field;
  return row;
}

SweepKey strings(std::vector<SweepText> SweepConfig::*field, const char* name, int64_t elements,
                 std::vector<std::string> allowed, const char* doc) {
  SweepKey row = row_of(name, KeyType::string, "", doc);
  row.key.allowed = std::move(allowed);
  row.key.elements = elements;
  row.field = field;
  return row;
}

bool is_array(const SweepKey& row) {
  return std::holds_alternative<std::vector<SweepText> SweepConfig::*>(row.field);
}

const SweepKey* find_sweep_key(const std::string& name) {
  for (const SweepKey& row : sweep_key_table())
    if (row.key.name == name) return &row;
  return nullptr;
}

[[noreturn]] void fail_unknown_sweep_key(const Source& source, Place place,
                                         const std::string& name) {
  std::vector<std::string> names;
  for (const SweepKey& row : sweep_key_table()) names.push_back(row.key.name);
  const std::string near = nearest(name, names);
  source.fail(place,
              "unknown key '" + name + "' in &sweep; " +
                  (near.empty() ? "keys: " + join(names, ", ") : "did you mean '" + near + "'?"));
}

// One layer: the deck's or the command line's.
class SweepBinder {
 public:
  explicit SweepBinder(SweepConfig& config) : config_(config) {}

  void bind(const Source& source, const SweepKey& row, const Assignment& assignment) {
    const Key& key = row.key;
    const std::vector<Element> elements =
        distribute(source, assignment, key.elements, is_array(row));
    if (!is_array(row)) claim(source, key, 1, assignment.place);
    for (const Element& element : elements) {
      if (is_array(row)) claim(source, key, element.index, assignment.place);
      set(row, element.index, read_scalar(source, key, *element.token),
          source.at(element.token->place));
    }
  }

 private:
  void claim(const Source& source, const Key& key, int64_t element, Place place) {
    const auto [earlier, is_new] = given_.insert({{key.name, element}, source.at(place)});
    if (!is_new)
      source.fail(place, key.full_name() + " is given twice, first at " + earlier->second);
  }

  void set(const SweepKey& row, int64_t element, const KeyValue& value, const std::string& where) {
    if (const auto* i = std::get_if<int64_t SweepConfig::*>(&row.field)) {
      config_.** i = std::get<int64_t>(value);
    } else if (const auto* r = std::get_if<double SweepConfig::*>(&row.field)) {
      config_.** r = std::get<double>(value);
    } else if (const auto* s = std::get_if<std::string SweepConfig::*>(&row.field)) {
      config_.** s = std::get<std::string>(value);
    } else {
      std::vector<SweepText>& array =
          config_.*std::get<std::vector<SweepText> SweepConfig::*>(row.field);
      // An array of the command line replaces the deck's.
      if (fresh_.insert({row.key.name, true}).second) array.clear();
      const size_t at = static_cast<size_t>(element - 1);
      if (array.size() <= at) array.resize(at + 1);
      array[at] = {std::get<std::string>(value), where};
    }
  }

  SweepConfig& config_;
  std::map<std::pair<std::string, int64_t>, std::string> given_;
  std::map<std::string, bool> fresh_;
};

}  // namespace

const std::vector<SweepKey>& sweep_key_table() {
  using C = SweepConfig;
  constexpr double most = 1e9;
  static const std::vector<SweepKey> table = {
      strings(&C::vary, "vary", most_dimensions, {},
              "keys and the values that they take; all combinations of all of them are rows"),
      strings(&C::columns, "columns", most_dimensions, {}, "keys that `rows` gives values"),
      strings(&C::rows, "rows", most_rows, {},
              "a table: one string per row, its values in the order of `columns`; '-': the deck's"),
      integer(&C::ranks, "ranks", "ranks", most, "ranks per row; 0: from its decomposition"),
      integer(&C::nodes, "nodes", "nodes", most,
              "nodes per row; 0: from ranks and ranks_per_node, else 1"),
      integer(&C::ranks_per_node, "ranks_per_node", "ranks", most,
              "ranks per node; 0: from ranks and nodes"),
      integer(&C::global_batch_tokens, "global_batch_tokens", "tokens", 9223372036854775807.0,
              "global_batch_size of a row is this / seq_length, rounded down; 0: the deck's"),
      integer(&C::gradient_accumulation, "gradient_accumulation", "micro-batches", most,
              "global_batch_size of a row is this x micro_batch_size x data_parallel; 0: the "
              "deck's"),
      string(&C::name, "name", {},
             "name of a row, as in '{run.name}-{zero_stage}'; '': run.name and what varies"),
      string(&C::prune, "prune", {"none", "refused", "memory"},
             "rows left out: those that a run would refuse, and those too large for "
             "device_memory_gib"),
      string(&C::launcher, "launcher", {},
             "command that starts a row; {ranks}, {nodes}, {ranks_per_node}, {deck}, {program}, "
             "{name}; '': srun in a Slurm job, else mpirun"),
      real(&C::time_limit_s, "time_limit_s", "s",
           "wall-clock limit of a row, passed on as run.time_limit_s; 0: none"),
      real(&C::grace_s, "grace_s", "s",
           "from the SIGUSR1 at the limit, on which a run writes its result, to the SIGTERM"),
      strings(&C::rerun, "rerun", 4, {"failed", "timeout", "invalid", "oom"},
              "outcomes of an earlier sweep that are run again"),
  };
  return table;
}

namespace {

std::string default_text(const SweepKey& row) {
  const SweepConfig defaults;
  if (const auto* i = std::get_if<int64_t SweepConfig::*>(&row.field))
    return std::to_string(defaults.**i);
  if (const auto* r = std::get_if<double SweepConfig::*>(&row.field))
    return format_real(defaults.**r);
  if (const auto* s = std::get_if<std::string SweepConfig::*>(&row.field))
    return format_string(defaults.**s);
  return "''";
}

}  // namespace

ReferenceGroup sweep_reference() {
  ReferenceGroup group{
      sweep_group, "many runs from one deck, with gptbench --sweep (doc/sweeps.md)", {}};
  for (const SweepKey& row : sweep_key_table()) group.rows.push_back({&row.key, default_text(row)});
  return group;
}

bool is_sweep_override(const std::string& text) {
  const size_t dot = text.find('.');
  return dot != std::string::npos && lower(trim(text.substr(0, dot))) == sweep_group;
}

SweepConfig read_sweep_config(const Source& source, const Group& group,
                              const std::vector<std::string>& overrides, int first_argument) {
  SweepConfig config;
  SweepBinder deck(config);
  for (const Assignment& assignment : group.assignments) {
    const SweepKey* row = find_sweep_key(assignment.key);
    if (row == nullptr) fail_unknown_sweep_key(source, assignment.place, assignment.key);
    deck.bind(source, *row, assignment);
  }
  SweepBinder command_line(config);
  for (size_t i = 0; i < overrides.size(); ++i) {
    if (!is_sweep_override(overrides[i])) continue;
    const Source argument = command_line_source(first_argument + static_cast<int>(i));
    const std::string& text = overrides[i];
    check_characters(argument, text);
    const size_t equals = text.find('=');
    const size_t dot = text.find('.');
    if (equals == std::string::npos || dot > equals)
      argument.fail({}, "'" + text + "' is not of the form sweep.key=value");
    Assignment assignment;
    assignment.key = lower(trim(text.substr(dot + 1, equals - dot - 1)));
    const SweepKey* row = find_sweep_key(assignment.key);
    if (row == nullptr) fail_unknown_sweep_key(argument, {}, assignment.key);
    assignment.values = parse_setting_value(argument, row->key, trim(text.substr(equals + 1)));
    command_line.bind(argument, *row, assignment);
  }
  return config;
}

}  // namespace gptbench
