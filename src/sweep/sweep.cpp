#include "sweep/sweep.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "data/data_paths.h"
#include "deck/binder.h"
#include "deck/validate.h"
#include "deck/values.h"
#include "project/layout.h"
#include "sweep/batch.h"
#include "sweep/values.h"

namespace gptbench {
namespace {

// A column that varies: a key of a run, or one of the quantities of &sweep.
struct Column {
  std::string name;          // "zero_stage", as in headings
  const Key* key = nullptr;  // null for a quantity
};

struct SweepDimension {
  std::vector<size_t> columns;
  std::vector<std::vector<std::string>> values;  // [point][column of the dimension]
  std::vector<std::string> where;                // [point]
};

const std::vector<std::string>& quantities() {
  static const std::vector<std::string> names = {"ranks", "nodes", "ranks_per_node",
                                                 "global_batch_tokens", "gradient_accumulation"};
  return names;
}

FailText fail_at(const std::string& where) {
  return [where](const std::string& message) { throw Error(Exit::usage, where + ": " + message); };
}

Column find_column(const std::string& name, const FailText& fail) {
  const size_t dot = name.find('.');
  const std::string group = dot == std::string::npos ? "" : name.substr(0, dot);
  const std::string last = dot == std::string::npos ? name : name.substr(dot + 1);
  if (group.empty() || group == sweep_group) {
    if (std::count(quantities().begin(), quantities().end(), last) > 0) return {last, nullptr};
  }
  std::vector<const Key*> found;
  std::vector<std::string> names = quantities();
  for (const Key& key : key_table()) {
    names.push_back(group.empty() ? key.name : key.full_name());
    if (key.name == last && (group.empty() || key.group == group)) found.push_back(&key);
  }
  if (found.empty()) {
    const std::string near = nearest(name, names);
    fail("no key '" + name + "'" +
         (near.empty() ? "; gptbench --keys lists them" : ", did you mean '" + near + "'?"));
  }
  if (found.size() > 1)
    fail("'" + name + "' is a key of several groups; write group.key, as in " +
         found[0]->full_name());
  const std::string full = found[0]->full_name();
  if (full == "run.name" || full == "output.directory")
    fail(full + " is set by the sweep itself; see sweep.name");
  return {found[0]->name, found[0]};
}

// The dimensions of &sweep and the columns that they fill.
class Dimensions {
 public:
  Dimensions(const SweepConfig& config, const std::string& where_group) {
    add_table(config, where_group);
    for (const SweepText& vary : config.vary) {
      if (vary.text.empty()) continue;
      const FailText fail = fail_at(vary.where + ": sweep.vary");
      const Dimension read = parse_vary(vary.text, fail);
      SweepDimension dimension;
      for (const std::string& key : read.keys) dimension.columns.push_back(add_column(key, fail));
      dimension.values = read.values;
      dimension.where.assign(read.values.size(), vary.where);
      dimensions_.push_back(std::move(dimension));
    }
    if (dimensions_.empty())
      throw Error(Exit::usage, where_group +
                                   ": nothing varies; give sweep.vary, as in vary(1) = "
                                   "'zero_stage = 0, 1, 2, 3', or sweep.columns and rows");
  }

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<SweepDimension>& list() const { return dimensions_; }

  int64_t rows() const {
    int64_t rows = 1;
    for (const SweepDimension& dimension : dimensions_) {
      rows *= static_cast<int64_t>(dimension.values.size());
      if (rows > max_sweep_rows)
        throw Error(Exit::usage, dimension.where.front() + ": the sweep has more than " +
                                     format_count(max_sweep_rows) + " rows");
    }
    return rows;
  }

 private:
  size_t add_column(const std::string& name, const FailText& fail) {
    const Column column = find_column(name, fail);
    for (const Column& other : columns_)
      if (other.name == column.name && other.key == column.key)
        fail((column.key != nullptr ? column.key->full_name() : column.name) + " varies twice");
    columns_.push_back(column);
    return columns_.size() - 1;
  }

  void add_table(const SweepConfig& config, const std::string& where_group) {
    SweepDimension table;
    for (const SweepText& column : config.columns) {
      if (column.text.empty()) continue;
      // One string may name several columns.
      const FailText fail = fail_at(column.where + ": sweep.columns");
      for (const std::string& name : parse_row(lower(column.text), fail)) {
        if (name == unset)
          fail("'-' is no key; it stands in sweep.rows, for the value of the deck");
        table.columns.push_back(add_column(name, fail));
      }
    }
    for (const SweepText& row : config.rows) {
      if (row.text.empty()) continue;
      const FailText fail = fail_at(row.where + ": sweep.rows");
      if (table.columns.empty()) fail("a table needs sweep.columns, the keys of its columns");
      std::vector<std::string> fields = parse_row(row.text, fail);
      if (fields.size() != table.columns.size())
        fail("'" + row.text + "' has " + std::to_string(fields.size()) + " values for " +
             std::to_string(table.columns.size()) + " columns");
      table.values.push_back(std::move(fields));
      table.where.push_back(row.where);
    }
    if (!table.columns.empty() && table.values.empty())
      throw Error(Exit::usage, where_group + ": sweep.columns are given without sweep.rows");
    if (!table.values.empty()) dimensions_.push_back(std::move(table));
  }

  std::vector<Column> columns_;
  std::vector<SweepDimension> dimensions_;
};

// The parsed strings of a row: settings of a deck, and quantities.
struct RowValues {
  std::vector<std::string> shown;  // [column]; "-" where the deck's stays
  std::vector<Setting> settings;
  std::map<std::string, int64_t> quantities;
  std::string where;
};

RowValues row_values(const Dimensions& dimensions, int64_t index) {
  RowValues out;
  out.shown.assign(dimensions.columns().size(), "-");
  int64_t stride = dimensions.rows();
  for (const SweepDimension& dimension : dimensions.list()) {
    const int64_t points = static_cast<int64_t>(dimension.values.size());
    stride /= points;
    const size_t point = static_cast<size_t>(index / stride % points);
    const std::string& where = dimension.where[point];
    if (out.where.empty()) out.where = where;
    for (size_t c = 0; c < dimension.columns.size(); ++c) {
      const Column& column = dimensions.columns()[dimension.columns[c]];
      const std::string& text = dimension.values[point][c];
      if (text == unset) continue;
      out.shown[dimension.columns[c]] = text;
      const Source source{where, false};
      if (column.key != nullptr) {
        out.settings.push_back(parse_setting(source, column.key->full_name() + "=" + text));
        continue;
      }
      Token token;
      token.kind = Token::Kind::word;
      token.text = text;
      const int64_t value = to_integer(source, token, column.name + " takes a number");
      if (value < 1) source.fail({}, column.name + " = " + text + "; it takes a number from 1");
      out.quantities[column.name] = value;
    }
  }
  return out;
}

// A quantity of the row: its own, else the sweep's.
int64_t quantity(const RowValues& values, const std::string& name, int64_t of_sweep) {
  const auto own = values.quantities.find(name);
  return own != values.quantities.end() ? own->second : of_sweep;
}

// Ranks, nodes and ranks per node: those that are not set follow from the others.
//   Worked example: tensor 4 and data 8 with ranks_per_node = 8: 32 ranks on 4 nodes.
void lay_out(SweepRow& row, const RowValues& values, const SweepConfig& sweep) {
  const ParallelConfig& p = row.deck.config.parallel;
  int64_t ranks = quantity(values, "ranks", sweep.ranks);
  int64_t nodes = quantity(values, "nodes", sweep.nodes);
  int64_t per_node = quantity(values, "ranks_per_node", sweep.ranks_per_node);
  if (ranks == 0 && nodes > 0 && per_node > 0)
    ranks = checked_product(nodes, per_node, "nodes x ranks_per_node");
  if (ranks == 0)
    ranks = checked_product(
        checked_product(p.tensor_parallel, p.pipeline_parallel, "the number of ranks"),
        checked_product(p.context_parallel, std::max<int64_t>(1, p.data_parallel),
                        "the number of ranks"),
        "the number of ranks");
  if (nodes == 0) nodes = per_node > 0 ? ceil_div(ranks, per_node) : 1;
  if (per_node == 0) per_node = ceil_div(ranks, nodes);
  row.ranks = ranks;
  row.nodes = nodes;
  row.ranks_per_node = std::min(per_node, ranks);
  if (nodes > ranks || ceil_div(ranks, per_node) > nodes)
    throw Error(Exit::usage, values.where + ": " + std::to_string(ranks) + " ranks do not go on " +
                                 std::to_string(nodes) + " nodes with " + std::to_string(per_node) +
                                 " ranks per node");
}

void set_value(Deck& deck, const char* group, const char* name, const KeyValue& value) {
  const Key& key = *find_key(group, name);
  if (key.get(deck.config) == value) return;
  key.set(deck.config, value);
  deck.origins[key_index(key)].kind = Origin::Kind::sweep;
}

// The row's deck says how many ranks it is for.
void fix_ranks(SweepRow& row) {
  set_value(row.deck, "parallel", "data_parallel",
            resolve(row.deck, row.ranks).parallel.data_parallel);
}

// The smaller of the run's limit and the sweep's: a run that knows its limit writes its result in
// time, under any launcher and also when the driver is gone.
void limit_time(SweepRow& row, double limit_s) {
  const double own_s = row.deck.config.run.limits.time_limit_s;
  if (limit_s > 0.0 && (own_s == 0.0 || limit_s < own_s))
    set_value(row.deck, "run", "time_limit_s", limit_s);
}

// Letters that a directory can have; others become '-', runs of '-' one.
std::string safe_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && c == '.') continue;  // would be hidden
    const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.';
    if (safe) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

std::string text_value(const Deck& deck, const Key& key) {
  const KeyValue value = key.get(deck.config);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const std::string number = format_value(key, value);
  const bool is_whole = number.size() > 2 && number.substr(number.size() - 2) == ".0";
  return is_whole ? number.substr(0, number.size() - 2) : number;
}

// The row's value of a key or quantity that varies, as text.
std::string shown_value(const Sweep& sweep, const SweepRow& row, const std::string& name,
                        const FailText& fail) {
  for (size_t c = 0; c < sweep.columns.size(); ++c)
    if (sweep.columns[c] == name) return row.values[c];
  fail("{" + name + "} does not vary");
  return "";
}

// The pattern of sweep.name, filled in.
std::string name_by_pattern(const Sweep& sweep, const SweepRow& row) {
  const FailText fail = fail_at(sweep.path + ": sweep.name = " + format_string(sweep.config.name));
  const std::map<std::string, std::string> figures = {
      {"row", std::to_string(row.number)},
      {"ranks", std::to_string(row.ranks)},
      {"nodes", std::to_string(row.nodes)},
      {"ranks_per_node", std::to_string(row.ranks_per_node)},
      {"run.name", sweep.name}};
  std::string out;
  const std::string& pattern = sweep.config.name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      out += pattern[i];
      continue;
    }
    const size_t end = pattern.find('}', i);
    if (end == std::string::npos) fail("'}' is missing");
    const std::string what = lower(pattern.substr(i + 1, end - i - 1));
    i = end;
    const auto known = figures.find(what);
    if (known != figures.end()) {
      out += known->second;
      continue;
    }
    const Column column = find_column(what, fail);
    out += column.key == nullptr ? shown_value(sweep, row, what, fail)
                                 : text_value(row.deck, *column.key);
  }
  return safe_name(out);
}

// The short name of a key in papers and in other programs; a key without one keeps its name.
std::string short_name(const std::string& key) {
  static const std::map<std::string, std::string> names = {{"activation_checkpointing", "ckpt"},
                                                           {"context_parallel", "cp"},
                                                           {"data_parallel", "dp"},
                                                           {"global_batch_size", "gbs"},
                                                           {"gradient_accumulation", "gas"},
                                                           {"micro_batch_size", "mbs"},
                                                           {"pipeline_parallel", "pp"},
                                                           {"ranks_per_node", "ppn"},
                                                           {"seq_length", "seq"},
                                                           {"sequence_parallel", "sp"},
                                                           {"tensor_parallel", "tp"},
                                                           {"virtual_stages", "vpp"},
                                                           {"zero_stage", "zero"}};
  const auto found = names.find(key);
  return found == names.end() ? key : found->second;
}

// Names of the rows without sweep.name: the sweep's, with keys and values that differ between rows.
// All rows have the same form, the first in which no name is too long: "x-zero_stage_3",
// "x-zero_3", "x-3", and last the sweep's name with the number of the row.
std::vector<std::string> names_by_settings(const Sweep& sweep, size_t longest) {
  std::vector<size_t> varied;
  for (size_t c = 0; c < sweep.columns.size(); ++c)
    if (std::any_of(sweep.rows.begin(), sweep.rows.end(), [&](const SweepRow& row) {
          return row.values[c] != sweep.rows.front().values[c];
        }))
      varied.push_back(c);
  using Label = std::function<std::string(const std::string& key)>;
  const std::vector<Label> labels = {
      [](const std::string& key) { return key + "_"; },
      [](const std::string& key) { return short_name(key) + "_"; },
      [](const std::string&) { return ""; },
  };
  std::vector<std::string> names;
  for (const Label& label : labels) {
    names.clear();
    for (const SweepRow& row : sweep.rows) {
      std::string name = sweep.name;
      for (const size_t c : varied) name += " " + label(sweep.columns[c]) + row.values[c];
      names.push_back(safe_name(name));
    }
    if (std::all_of(names.begin(), names.end(),
                    [&](const std::string& name) { return name.size() <= longest; }))
      return names;
  }
  names.clear();
  for (const SweepRow& row : sweep.rows)
    names.push_back(safe_name(sweep.name + " " + std::to_string(row.number)));
  return names;
}

// The name that sweep.name gives each row.
std::vector<std::string> names_by_pattern(const Sweep& sweep, size_t longest) {
  std::vector<std::string> names;
  for (const SweepRow& row : sweep.rows) {
    names.push_back(name_by_pattern(sweep, row));
    const size_t letters = names.back().size();
    if (letters == 0 || letters > longest)
      throw Error(Exit::usage, sweep.path + ": sweep.name gives row " + std::to_string(row.number) +
                                   " a name of " + std::to_string(letters) +
                                   " letters; allowed: 1 to " + std::to_string(longest));
  }
  return names;
}

void name_rows(Sweep& sweep) {
  constexpr size_t longest = 100;  // of run.name
  const std::vector<std::string> names = sweep.config.name.empty()
                                             ? names_by_settings(sweep, longest)
                                             : names_by_pattern(sweep, longest);
  std::map<std::string, int64_t> taken;
  for (size_t r = 0; r < sweep.rows.size(); ++r) {
    SweepRow& row = sweep.rows[r];
    row.name = names[r];
    const auto [earlier, is_new] = taken.insert({row.name, row.number});
    if (!is_new)
      throw Error(Exit::usage, sweep.path + ": rows " + std::to_string(earlier->second) + " and " +
                                   std::to_string(row.number) + " have the same name '" + row.name +
                                   "'; they are the same, or sweep.name tells them not apart");
    set_value(row.deck, "run", "name", row.name);
    set_value(row.deck, "output", "directory", sweep.directory + "/" + row.name);
    const std::string& checkpoints = row.deck.config.checkpoint.directory;
    if (!checkpoints.empty())
      set_value(row.deck, "checkpoint", "directory", checkpoints + "/" + row.name);
  }
}

// Lines of the comment that says what of the rows is published and what is inferred.
std::string origins_of(const std::string& text) {
  std::string origins;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string begin = origins.empty() ? "! Published" : "! ";
    if (line.rfind(begin, 0) == 0)
      origins += line + "\n";
    else if (!origins.empty())
      break;
  }
  return origins;
}

}  // namespace

Sweep expand_sweep(const std::string& path, const std::string& text,
                   const std::vector<std::string>& overrides) {
  const Source source{path};
  std::vector<Group> groups = parse_namelist(source, text);
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [](const Group& group) { return group.name == sweep_group; });
  if (found == groups.end())
    source.fail({1, 1},
                "no group &sweep; it says what varies, as in &sweep vary(1) = "
                "'zero_stage = 0, 1, 2, 3' /");
  const Group group = *found;
  groups.erase(found);

  Sweep sweep;
  sweep.path = path;
  sweep.origins = origins_of(text);
  sweep.config = read_sweep_config(source, group, overrides);
  const Dimensions dimensions(sweep.config, source.at(group.place));

  std::vector<Setting> settings;
  for (const std::string& setting : overrides) {
    if (is_sweep_override(setting)) continue;
    const Source argument = command_line_source(setting);
    settings.push_back(parse_setting(argument, setting));
    for (const Column& column : dimensions.columns())
      if (column.key == settings.back().key)
        argument.fail({}, column.key->full_name() + " varies in the sweep; change it there");
  }

  const Deck base = bind_deck(path, "", groups, {}, settings);
  sweep.name = base.config.run.name;
  sweep.directory = output_directory(base.config);
  for (const Column& column : dimensions.columns()) sweep.columns.push_back(column.name);

  const int64_t rows = dimensions.rows();
  for (int64_t index = 0; index < rows; ++index) {
    const RowValues values = row_values(dimensions, index);
    SweepRow row;
    row.number = index + 1;
    row.values = values.shown;
    row.deck = bind_deck(path, "", groups, values.settings, settings);
    // Beside this deck, which those of the rows are not.
    Config& config = row.deck.config;
    for (std::string* data : {&config.data.path, &config.convergence.held_out_path})
      *data = find_data(*data, std::filesystem::path(path).parent_path().string());
    try {
      limit_time(row, sweep.config.time_limit_s);
      lay_out(row, values, sweep.config);
      set_global_batch(
          row, quantity(values, "global_batch_tokens", sweep.config.global_batch_tokens),
          quantity(values, "gradient_accumulation", sweep.config.gradient_accumulation));
      const LayoutFrom layout = layout_from(config);
      validate(row.deck, layout);
      if (layout == LayoutFrom::search)
        with_legal_layout(row.deck, row.ranks);
      else
        fix_ranks(row);
    } catch (const Error& error) {
      row.refused = error.what();
    }
    sweep.rows.push_back(std::move(row));
  }
  name_rows(sweep);
  return sweep;
}

}  // namespace gptbench
