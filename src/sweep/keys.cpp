// The table of &sweep's keys and how they are read.
#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"
#include "deck/binder.h"
#include "deck/values.h"
#include "sweep/config.h"

namespace gptbench {
namespace {

constexpr int64_t max_dimensions = 32;
constexpr int64_t max_rows = 10000;

SweepKey row_of(const char* name, KeyType type, const char* unit, const char* doc) {
  SweepKey row;
  row.key.group = sweep_group;
  row.key.name = name;
  row.key.type = type;
  row.key.unit = unit;
  row.key.doc = doc;
  return row;
}

template <typename T>
SweepKey scalar(T SweepConfig::*field, const char* name, KeyType type, const char* unit,
                const char* doc, double max = 0.0) {
  SweepKey row = row_of(name, type, unit, doc);
  row.key.max = max;
  if constexpr (std::is_enum_v<T>) row.key.allowed = names_of(T{});
  row.default_text = format_value(row.key, get_value(SweepConfig().*field));
  row.set = [field](SweepConfig& c, const KeyValue& value) { set_value(c.*field, value); };
  return row;
}

SweepKey strings(std::vector<SweepText> SweepConfig::*array, const char* name, int64_t elements,
                 std::vector<std::string> allowed, const char* doc) {
  SweepKey row = row_of(name, KeyType::string, "", doc);
  row.key.allowed = std::move(allowed);
  row.key.elements = elements;
  row.default_text = "''";
  row.array = array;
  return row;
}

const SweepKey& known_key(const Source& source, Place place, const std::string& name) {
  std::vector<std::string> names;
  for (const SweepKey& row : sweep_key_table()) {
    if (row.key.name == name) return row;
    names.push_back(row.key.name);
  }
  source.fail(place, "unknown key '" + name + "' in &sweep" + key_hint(name, names));
}

// One layer: the deck's or the command line's.
class SweepBinder {
 public:
  explicit SweepBinder(SweepConfig& config) : config_(config) {}

  void bind(const Source& source, const SweepKey& row, const Assignment& assignment) {
    for (const Element& element : claims_.take(source, row.key, assignment))
      set(row, element.index, read_scalar(source, row.key, *element.token),
          source.at(element.token->place));
  }

 private:
  void set(const SweepKey& row, int64_t element, const KeyValue& value, const std::string& where) {
    if (row.array == nullptr) return row.set(config_, value);
    std::vector<SweepText>& array = config_.*row.array;
    // An array of the command line replaces the deck's.
    if (fresh_.insert(row.key.name).second) array.clear();
    const size_t at = static_cast<size_t>(element - 1);
    if (array.size() <= at) array.resize(at + 1);
    array[at] = {std::get<std::string>(value), where};
  }

  SweepConfig& config_;
  Claims claims_;
  std::set<std::string> fresh_;
};

}  // namespace

const std::vector<SweepKey>& sweep_key_table() {
  using C = SweepConfig;
  constexpr double most = 1e9, max_value = std::numeric_limits<double>::max();
  static const std::vector<SweepKey> table = {
      strings(&C::vary, "vary", max_dimensions, {},
              "keys and the values that they take; all combinations of all of them are rows"),
      strings(&C::columns, "columns", max_dimensions, {}, "keys that `rows` gives values"),
      strings(&C::rows, "rows", max_rows, {},
              "a table: one string per row, its values in the order of `columns`; '-': the deck's"),
      scalar(&C::ranks, "ranks", KeyType::integer, "ranks",
             "ranks per row; 0: from its decomposition", most),
      scalar(&C::nodes, "nodes", KeyType::integer, "nodes",
             "nodes per row; 0: from ranks and ranks_per_node, else 1", most),
      scalar(&C::ranks_per_node, "ranks_per_node", KeyType::integer, "ranks",
             "ranks per node; 0: from ranks and nodes", most),
      scalar(&C::global_batch_tokens, "global_batch_tokens", KeyType::integer, "tokens",
             "global_batch_size of a row is this / seq_length, rounded down; 0: the deck's",
             9223372036854775807.0),
      scalar(&C::gradient_accumulation, "gradient_accumulation", KeyType::integer, "micro-batches",
             "global_batch_size of a row is this x micro_batch_size x data_parallel; 0: the "
             "deck's",
             most),
      scalar(&C::name, "name", KeyType::string, "",
             "name of a row, as in '{run.name}-{zero_stage}'; '': run.name, what varies and its "
             "values"),
      scalar(&C::prune, "prune", KeyType::string, "",
             "rows left out: those that a run would refuse, and those too large for "
             "device_memory_gib"),
      scalar(&C::launcher, "launcher", KeyType::string, "",
             "command of a row; {ranks}, {nodes}, {ranks_per_node}, {exclude}, {deck}, {program}, "
             "{name}, {output}; '': srun under Slurm, mpiexec under PJM, else mpirun"),
      scalar(&C::time_limit_s, "time_limit_s", KeyType::real, "s",
             "wall-clock limit of a row, passed on as run.time_limit_s; 0: none", max_value),
      scalar(&C::grace_s, "grace_s", KeyType::real, "s",
             "from the SIGUSR1 at the limit, on which a run writes its result, to the SIGTERM",
             max_value),
      strings(&C::rerun, "rerun", 4, {"failed", "timeout", "invalid", "oom"},
              "outcomes of an earlier sweep that are run again"),
  };
  return table;
}

ReferenceGroup sweep_reference() {
  ReferenceGroup group{
      sweep_group, "many runs from one deck, with gptbench --sweep (doc/sweeps.md)", {}};
  for (const SweepKey& row : sweep_key_table()) group.rows.push_back({&row.key, row.default_text});
  return group;
}

bool is_sweep_override(const std::string& text) {
  const size_t dot = text.find('.');
  return dot != std::string::npos && lower(trim(text.substr(0, dot))) == sweep_group;
}

SweepConfig read_sweep_config(const Source& source, const Group& group,
                              const std::vector<std::string>& overrides) {
  SweepConfig config;
  SweepBinder deck(config);
  for (const Assignment& assignment : group.assignments)
    deck.bind(source, known_key(source, assignment.place, assignment.key), assignment);
  SweepBinder command_line(config);
  for (const std::string& setting : overrides) {
    if (!is_sweep_override(setting)) continue;
    const Source argument = command_line_source(setting);
    const SettingText parts = split_setting(argument, setting, "sweep.key=value");
    const SweepKey& row = known_key(argument, {}, parts.key);
    Assignment assignment;
    assignment.key = parts.key;
    assignment.values = parse_setting_value(argument, row.key, parts.value);
    command_line.bind(argument, row, assignment);
  }
  return config;
}

}  // namespace gptbench
