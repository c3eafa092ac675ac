#include "deck/deck.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/namelist.h"
#include "deck/presets.h"
#include "deck/validate.h"
#include "deck/values.h"

namespace gptbench {
namespace {

std::string group_list() {
  std::vector<std::string> names;
  for (const KeyGroup& group : key_groups()) names.push_back("&" + group.name);
  return join(names, ", ");
}

bool is_group(const std::string& name) {
  const auto& groups = key_groups();
  return std::any_of(groups.begin(), groups.end(),
                     [&](const KeyGroup& group) { return group.name == name; });
}

[[noreturn]] void fail_unknown_group(const Source& source, Place place, const std::string& name) {
  std::vector<std::string> names;
  for (const KeyGroup& group : key_groups()) names.push_back(group.name);
  const std::string near = nearest(name, names);
  source.fail(place, "unknown group '" + name + "'" +
                         (near.empty() ? "" : " (did you mean '" + near + "'?)") +
                         "; groups: " + group_list());
}

[[noreturn]] void fail_unknown_key(const Source& source, Place place, const std::string& group,
                                   const std::string& name) {
  std::vector<std::string> here;
  std::vector<std::string> elsewhere;
  for (const Key& key : key_table()) {
    if (key.group == group) {
      here.push_back(key.name);
    } else if (key.name == name) {
      elsewhere.push_back("&" + key.group);
    }
  }
  std::string hint;
  if (!elsewhere.empty()) {
    hint = "; it belongs to " + join(elsewhere, ", ");
  } else if (const std::string near = nearest(name, here); !near.empty()) {
    hint = "; did you mean '" + near + "'?";
  } else {
    hint = "; keys: " + join(here, ", ");
  }
  source.fail(place, "unknown key '" + name + "' in &" + group + hint);
}

// Throws at `place` when `value` is outside what the table allows.
void check_range(const Source& source, Place place, const Key& key, const KeyValue& value) {
  bool ok = true;
  if (key.type == KeyType::integer || key.type == KeyType::real) {
    const double number = key.type == KeyType::integer
                              ? static_cast<double>(std::get<int64_t>(value))
                              : std::get<double>(value);
    ok = std::isfinite(number) && (key.min_open ? number > key.min : number >= key.min) &&
         (key.max_open ? number < key.max : number <= key.max);
  } else if (key.type == KeyType::string && !key.allowed.empty()) {
    const std::string text = lower(std::get<std::string>(value));
    ok = std::find(key.allowed.begin(), key.allowed.end(), text) != key.allowed.end();
  }
  if (ok) return;
  std::string hint;
  if (key.type == KeyType::string) {
    const std::string near = nearest(lower(std::get<std::string>(value)), key.allowed);
    if (!near.empty()) hint = " (did you mean " + format_string(near) + "?)";
  }
  source.fail(place, key.full_name() + " = " + format_value(key, value) + " is not allowed" + hint +
                         "; allowed: " + allowed_text(key));
}

KeyValue read_scalar(const Source& source, const Key& key, const Token& token) {
  const std::string expected = key.full_name() + " takes " + allowed_text(key);
  KeyValue value;
  switch (key.type) {
    case KeyType::integer:
      value = to_integer(source, token, expected);
      break;
    case KeyType::real:
      value = to_real(source, token, expected);
      break;
    case KeyType::logical:
      value = to_logical(source, token, expected);
      break;
    case KeyType::string:
    case KeyType::list:
      value = to_string(source, token, expected);
      break;
  }
  check_range(source, token.place, key, value);
  // Names of choices are printed and compared in lower case.
  if (key.type == KeyType::string && !key.allowed.empty()) {
    value = lower(std::get<std::string>(value));
  }
  return value;
}

// Elements of a list key as they stand after all its assignments -> one string with commas. An
// element may itself hold several names: 'optimizer, parameters'.
std::string join_list(const Source& source, Place place, const Key& key,
                      const std::vector<std::string>& elements) {
  std::vector<std::string> names;
  for (const std::string& element : elements) {
    for (const std::string& part : split(element, ',')) {
      const std::string name = lower(part);
      if (std::find(key.allowed.begin(), key.allowed.end(), name) == key.allowed.end()) {
        const std::string near = nearest(name, key.allowed);
        source.fail(place,
                    key.full_name() + ": " + format_string(name) + " is not allowed" +
                        (near.empty() ? "" : " (did you mean " + format_string(near) + "?)") +
                        "; allowed: " + allowed_text(key));
      }
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        source.fail(place, key.full_name() + ": " + format_string(name) + " is given twice");
      }
      names.push_back(name);
    }
  }
  const bool has_none = std::find(names.begin(), names.end(), "none") != names.end();
  if (has_none && names.size() > 1) {
    source.fail(place, key.full_name() + ": 'none' stands alone");
  }
  return names.empty() ? "none" : join(names, ",");
}

// One layer of settings on top of the Config so far.
class Binder {
 public:
  Binder(Deck& deck, Origin::Kind kind) : deck_(deck), kind_(kind) {}

  // `where` replaces the place of each key in its Origin (presets); "" keeps it.
  void bind(const Source& source, const Key& key, const Assignment& assignment,
            const std::string& where = "") {
    const bool is_array = key.type == KeyType::list;
    const std::vector<Element> elements = distribute(source, assignment, key.elements, is_array);
    if (is_array) {
      for (const Element& element : elements) claim(source, key, element.index, assignment.place);
    } else {
      claim(source, key, 1, assignment.place);  // also by `key =` with a null value
    }
    if (elements.empty()) return;

    if (is_array) {
      // Elements start blank at the first assignment of this layer, the default 'none' included.
      std::vector<std::string>& list = lists_[key.full_name()];
      list.resize(static_cast<size_t>(key.elements));
      for (const Element& element : elements) {
        list[static_cast<size_t>(element.index - 1)] =
            std::get<std::string>(read_scalar(source, key, *element.token));
      }
      key.set(deck_.config, join_list(source, elements[0].token->place, key, list));
    } else {
      key.set(deck_.config, read_scalar(source, key, *elements[0].token));
    }
    deck_.origins[key_index(key)] = {kind_, where.empty() ? source.at(assignment.place) : where};
  }

 private:
  // A key, or an element of it, may be given once in a layer.
  void claim(const Source& source, const Key& key, int64_t element, Place place) {
    const auto [earlier, is_new] = given_.insert({{key.full_name(), element}, source.at(place)});
    if (is_new) return;
    source.fail(place, key.full_name() + " is given twice, first at " + earlier->second);
  }

  Deck& deck_;
  Origin::Kind kind_;
  std::map<std::pair<std::string, int64_t>, std::string> given_;
  std::map<std::string, std::vector<std::string>> lists_;
};

void bind_groups(Binder& binder, const Source& source, const std::vector<Group>& groups,
                 const std::string& where = "") {
  for (const Group& group : groups) {
    if (!is_group(group.name)) fail_unknown_group(source, group.place, group.name);
    for (const Assignment& assignment : group.assignments) {
      const Key* key = find_key(group.name, assignment.key);
      if (key == nullptr) fail_unknown_key(source, assignment.place, group.name, assignment.key);
      binder.bind(source, *key, assignment, where);
    }
  }
}

// Puts the preset that config.model.preset names under the layers to come.
void bind_preset(Deck& deck) {
  const std::string name = deck.config.model.preset;
  if (name.empty()) return;
  for (const Preset& preset : embedded_presets()) {
    if (preset.name != name) continue;
    Binder binder(deck, Origin::Kind::preset);
    const Source source{"preset " + name};
    bind_groups(binder, source, parse_namelist(source, preset.text),
                deck.origin("model", "preset").where);
  }
}

struct Override {
  Source source;
  const Key* key = nullptr;
  Assignment assignment;
};

Override parse_override(const std::string& text, int argument) {
  Override out;
  out.source = {"command line: argument " + std::to_string(argument), false};
  const Source& source = out.source;
  check_characters(source, text);
  if (text.find_first_of("\r\n") != std::string::npos) {
    source.fail({}, "a line end has no place in an override");
  }
  const size_t equals = text.find('=');
  const size_t dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    source.fail({}, "'" + text + "' is not of the form group.key=value, as in run.steps=20");
  }
  const std::string group = lower(trim(text.substr(0, dot)));
  const std::string name = lower(trim(text.substr(dot + 1, equals - dot - 1)));
  const std::string value = trim(text.substr(equals + 1));
  if (!is_group(group)) fail_unknown_group(source, {}, group);
  out.key = find_key(group, name);
  if (out.key == nullptr) fail_unknown_key(source, {}, group, name);

  out.assignment.key = name;
  const bool is_text = out.key->type == KeyType::string || out.key->type == KeyType::list;
  const bool is_quoted = !value.empty() && (value[0] == '\'' || value[0] == '"');
  if (is_text && !is_quoted) {
    Token token;
    token.kind = Token::Kind::string;
    token.text = value;
    out.assignment.values = {token};
  } else {
    out.assignment.values = parse_value_list(source, value);
    const auto& values = out.assignment.values;
    if (values.empty() || values[0].kind == Token::Kind::null) {
      source.fail({}, "'" + text + "' has no value; " + out.key->full_name() + " takes " +
                          allowed_text(*out.key));
    }
  }
  return out;
}

bool names_preset(const Override& item) {
  return item.key == find_key("model", "preset");
}

void bind_overrides(Deck& deck, const std::vector<Override>& overrides) {
  Binder binder(deck, Origin::Kind::command_line);
  for (const Override& item : overrides) {
    if (!names_preset(item)) continue;
    binder.bind(item.source, *item.key, item.assignment);
    bind_preset(deck);
  }
  for (const Override& item : overrides) {
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
  throw Error(Exit::usage, where(keys) + ": " + message);
}

std::string read_deck_text(const std::string& path) {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::string& message) {
    throw Error(Exit::usage, path + ": " + message);
  };
  const std::string limit = format_bytes(max_deck_bytes);

  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) fail("cannot be read: " + error.message());
  if (!fs::exists(status)) fail("no such file; give the path of a deck, as in input/124m_short.in");
  if (fs::is_directory(status)) fail("is a directory; give the path of a deck");
  if (fs::is_regular_file(status)) {
    const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
    if (!error && bytes > max_deck_bytes) {
      fail("is " + format_bytes(bytes) + ", too large for a deck; allowed: at most " + limit);
    }
  }

  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot be opened for reading; check its permissions");
  // One byte more than allowed tells a pipe that is too long from one that just fits.
  std::string text(static_cast<size_t>(max_deck_bytes) + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) fail("cannot be read");
  text.resize(static_cast<size_t>(in.gcount()));
  if (static_cast<int64_t>(text.size()) > max_deck_bytes) {
    fail("is too large for a deck; allowed: at most " + limit);
  }
  if (trim(text).empty()) fail("is empty; a deck holds namelist groups such as &run ... /");
  return text;
}

Deck parse_deck(const std::string& path, const std::string& text,
                const std::vector<std::string>& overrides, int first_argument) {
  Deck deck;
  deck.path = path;
  deck.raw_text = text;
  deck.overrides = overrides;
  deck.origins.resize(key_table().size());

  const Source source{path};
  const std::vector<Group> groups = parse_namelist(source, text);
  if (groups.empty()) {
    source.fail({1, 1}, "no namelist group found; groups: " + group_list());
  }
  std::vector<Override> parsed;
  for (const std::string& override_text : overrides) {
    const int argument = first_argument + static_cast<int>(parsed.size());
    parsed.push_back(parse_override(override_text, argument));
  }
  if (std::none_of(parsed.begin(), parsed.end(), names_preset)) {
    Binder binder(deck, Origin::Kind::deck);
    bind_groups(binder, source, preset_assignment(groups));
    bind_preset(deck);
  }
  Binder binder(deck, Origin::Kind::deck);
  bind_groups(binder, source, groups);
  bind_overrides(deck, parsed);
  return deck;
}

Deck read_deck(const std::string& path, const std::vector<std::string>& overrides) {
  Deck deck = parse_deck(path, read_deck_text(path), overrides);
  validate(deck);
  check_features(deck);
  return deck;
}

}  // namespace gptbench
