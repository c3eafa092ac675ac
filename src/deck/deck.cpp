#include "deck/deck.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/binder.h"
#include "deck/namelist.h"
#include "deck/presets.h"
#include "deck/problem_class.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

// Binds the keys of the preset that config.model.preset names; what is bound later overrides them.
void bind_preset(Deck& deck) {
  const std::string name = deck.config.model.preset;
  if (name.empty()) return;
  for (const Preset& preset : embedded_presets()) {
    if (preset.name != name) continue;
    Binder binder(deck, Origin::Kind::preset);
    const Source source{"preset " + name};
    binder.bind(source, parse_namelist(source, preset.text), deck.origin("model", "preset").where);
  }
}

bool names_preset(const Setting& item) {
  return item.key == find_key("model", "preset");
}

// Binds the keys of a problem class; what is bound later overrides them.
void bind_class(Deck& deck, const ProblemClass& problem) {
  const Source source{"class " + problem.name, false};
  Binder binder(deck, Origin::Kind::problem_class);
  for (const std::string& text : problem.deck) {
    const Setting item = parse_setting(source, text);
    binder.bind(item.source, *item.key, item.assignment);
    if (names_preset(item)) bind_preset(deck);
  }
}

// Binds the settings of the command line: a preset overrides the deck, keys beside it the preset.
void bind_overrides(Deck& deck, const std::vector<Setting>& overrides) {
  Binder binder(deck, Origin::Kind::command_line);
  for (const Setting& item : overrides) {
    if (!names_preset(item)) continue;
    binder.bind(item.source, *item.key, item.assignment);
    bind_preset(deck);
  }
  for (const Setting& item : overrides) {
    if (!names_preset(item)) binder.bind(item.source, *item.key, item.assignment);
  }
}

// The key &model preset alone, so that the preset can be put under the deck's other keys.
std::vector<Group> preset_assignment(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    if (group.name != "model") continue;
    Group only = group;
    only.assignments.clear();
    for (const Assignment& assignment : group.assignments) {
      if (assignment.key == "preset") only.assignments.push_back(assignment);
    }
    return {only};
  }
  return {};
}

// Binds the keys of a class (null: none), then preset, deck, row of a sweep and command line.
Deck bind_layers(const std::string& path, const std::string& text, const std::vector<Group>& groups,
                 const std::vector<Setting>& row, const std::vector<Setting>& overrides,
                 const ProblemClass* problem) {
  Deck deck;
  deck.path = path;
  deck.raw_text = text;
  deck.origins.resize(key_table().size());

  const Source source{path};
  if (problem != nullptr) bind_class(deck, *problem);
  if (std::none_of(overrides.begin(), overrides.end(), names_preset)) {
    const auto of_row = std::find_if(row.begin(), row.end(), names_preset);
    if (of_row != row.end()) {
      Binder(deck, Origin::Kind::sweep).bind(of_row->source, *of_row->key, of_row->assignment);
    } else {
      Binder(deck, Origin::Kind::deck).bind(source, preset_assignment(groups));
    }
    if (deck.origin("model", "preset").kind > Origin::Kind::problem_class) bind_preset(deck);
  }
  Binder(deck, Origin::Kind::deck).bind(source, groups);
  Binder row_binder(deck, Origin::Kind::sweep);
  for (const Setting& item : row) row_binder.bind(item.source, *item.key, item.assignment);
  bind_overrides(deck, overrides);
  return deck;
}

}  // namespace

const Origin& Deck::origin(const std::string& group, const std::string& key) const {
  return origins[key_index(*find_key(group, key))];
}

std::string Deck::where(const std::vector<std::string>& keys) const {
  Origin best;
  best.where = path;
  for (const std::string& key : keys) {
    const size_t dot = key.find('.');
    const Origin& candidate = origin(key.substr(0, dot), key.substr(dot + 1));
    if (candidate.kind > best.kind) best = candidate;
  }
  return best.where;
}

void Deck::fail(const std::vector<std::string>& keys, const std::string& message) const {
  std::string text;
  for (size_t at = 0; at < message.size(); ++at) {
    const size_t end = message[at] == '{' ? message.find('}', at) : std::string::npos;
    const std::string name = end != std::string::npos ? message.substr(at + 1, end - at - 1) : "";
    const size_t first = !name.empty() && name[0] == '=' ? 1 : 0, dot = name.find('.');
    const Key* const key = dot != std::string::npos
                               ? find_key(name.substr(first, dot - first), name.substr(dot + 1))
                               : nullptr;
    if (key == nullptr) {
      text += message[at];
      continue;
    }
    text += (first == 0 ? name + " = " : "") + format_value(*key, key->get(config));
    at = end;
  }
  throw Refusal(keys, where(keys) + ": " + text);
}

std::string read_deck_text(const std::string& path, const std::string& kind) {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::string& message) {
    throw Error(Exit::usage, path + ": " + message);
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) fail("cannot be read: " + error.message());
  const bool is_setting = path.find('=') != std::string::npos;
  std::string advice = "give the path of a " + kind;
  // The module file of an installation names the folder that its decks lie in.
  const char* const data = std::getenv("GPTBENCH_DATA");
  if (kind == "deck")
    advice += ", as in " + (data != nullptr ? std::string(data) + "/" : "") + "input/124m_short.in";
  if (!fs::exists(status))
    fail("no such file; " +
         (is_setting ? "the path of a deck comes before group.key=value" : advice));
  if (fs::is_directory(status)) fail("is a directory; " + advice);
  // Opening a FIFO would wait for its writer. These names are of files that the shell has opened:
  // gptbench --check <(sed ... deck.in)
  const bool opened = path == "/dev/stdin" || path.rfind("/dev/fd/", 0) == 0 ||
                      path.rfind("/proc/self/fd/", 0) == 0;
  if (!opened && !fs::is_regular_file(status))
    fail("is not a regular file; " + advice + ", or pipe it to /dev/stdin");

  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot be opened for reading; check its permissions");
  std::string text;
  char part[1 << 14];
  do {
    in.read(part, sizeof part);
    text.append(part, static_cast<size_t>(in.gcount()));
  } while (in && static_cast<int64_t>(text.size()) <= max_deck_bytes);
  if (in.bad()) fail("cannot be read");
  if (static_cast<int64_t>(text.size()) > max_deck_bytes) {
    fail("is too large for a deck; allowed: at most " + format_bytes(max_deck_bytes));
  }
  if (trim(text).empty()) fail("is empty; a deck holds namelist groups such as &run ... /");
  return text;
}

Deck bind_deck(const std::string& path, const std::string& text, const std::vector<Group>& groups,
               const std::vector<Setting>& row, const std::vector<Setting>& overrides) {
  // Any layer may name the class, whose keys lie under all of them.
  Deck deck = bind_layers(path, text, groups, row, overrides, nullptr);
  const ProblemClass* const problem = find_class(deck.config.run.problem_class);
  return problem == nullptr ? deck : bind_layers(path, text, groups, row, overrides, problem);
}

Deck parse_deck(const std::string& path, const std::string& text,
                const std::vector<std::string>& overrides) {
  const Source source{path};
  const std::vector<Group> groups = parse_namelist(source, text);
  if (groups.empty()) {
    source.fail({1, 1}, "no namelist group found; groups: " + group_list());
  }
  std::vector<Setting> parsed;
  for (const std::string& setting : overrides)
    parsed.push_back(parse_setting(command_line_source(setting), setting));
  Deck deck = bind_deck(path, text, groups, {}, parsed);
  deck.overrides = overrides;
  return deck;
}

Deck read_deck(const std::string& path, const std::vector<std::string>& overrides) {
  Deck deck = parse_deck(path, read_deck_text(path), overrides);
  validate(deck, layout_from(deck.config));
  return deck;
}

}  // namespace gptbench
