#include "deck/binder.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "deck/values.h"

namespace gptbench {

std::string group_list() {
  std::vector<std::string> names;
  for (const KeyGroup& group : key_groups()) names.push_back("&" + group.name);
  names.push_back(std::string("&") + sweep_group);
  return join(names, ", ");
}

namespace {

bool is_group(const std::string& name) {
  const auto& groups = key_groups();
  return std::any_of(groups.begin(), groups.end(),
                     [&](const KeyGroup& group) { return group.name == name; });
}

// Throws at `place` when `value` is outside what the table allows.
void check_range(const Source& source, Place place, const Key& key, const KeyValue& value) {
  bool ok = true;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    const double number = static_cast<double>(*integer);
    ok = number >= key.min && number <= key.max;
  } else if (key.type == KeyType::real) {
    const double number = std::get<double>(value);
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
  const std::string shown = std::holds_alternative<int64_t>(value)
                                ? std::to_string(std::get<int64_t>(value))
                                : format_value(key, value);
  const auto* const real = std::get_if<double>(&value);
  if (real != nullptr && !std::isfinite(*real))
    hint = std::isnan(*real) ? " (not a number)" : " (too large for a number)";
  source.fail(place, key.full_name() + " = " + shown + " is not allowed" + hint +
                         "; allowed: " + allowed_text(key));
}

// Elements of a list key as they stand after all its assignments -> one string with commas. An
// element may itself hold several names: 'optimizer, parameters'.
std::string join_names(const Source& source, Place place, const Key& key,
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
  if (contains(names, std::string(empty_list)) && names.size() > 1)
    source.fail(place, key.full_name() + ": 'none' stands alone");
  return names.empty() ? empty_list : join(names, ",");
}

// The same of integers: all up to the last that is given, -1 for those that are not.
std::string join_integers(std::vector<std::string> elements) {
  while (!elements.empty() && elements.back().empty()) elements.pop_back();
  for (std::string& element : elements)
    if (element.empty()) element = "-1";
  return join(elements, ",");
}

// Row of the key table.
const Key& known_key(const Source& source, Place place, const std::string& group,
                     const std::string& name) {
  if (const Key* key = find_key(group, name)) return *key;
  std::vector<std::string> here, elsewhere;
  for (const Key& key : key_table()) {
    if (key.group == group) here.push_back(key.name);
    if (key.name == name) elsewhere.push_back("&" + key.group);
  }
  source.fail(place, "unknown key '" + name + "' in &" + group +
                         (elsewhere.empty() ? key_hint(name, here)
                                            : "; it belongs to " + join(elsewhere, ", ")));
}

}  // namespace

void fail_unknown_group(const Source& source, Place place, const std::string& name) {
  if (name == sweep_group)
    source.fail(place,
                "the deck is a sweep: gptbench --sweep DECK runs its rows, --list prints them");
  std::vector<std::string> names;
  for (const KeyGroup& group : key_groups()) names.push_back(group.name);
  const std::string near = nearest(name, names);
  source.fail(place, "unknown group '" + name + "'" +
                         (near.empty() ? "" : " (did you mean '" + near + "'?)") +
                         "; groups: " + group_list());
}

std::string key_hint(const std::string& name, const std::vector<std::string>& keys) {
  const std::string near = nearest(name, keys);
  return near.empty() ? "; keys: " + join(keys, ", ") : "; did you mean '" + near + "'?";
}

KeyValue read_scalar(const Source& source, const Key& key, const Token& token) {
  const std::string expected = key.full_name() + " takes " + allowed_text(key);
  KeyValue value;
  if (key.type == KeyType::integer || key.type == KeyType::integers)
    value = to_integer(source, token, expected);
  else if (key.type == KeyType::real)
    value = to_real(source, token, expected);
  else if (key.type == KeyType::logical)
    value = to_logical(source, token, expected);
  else
    value = to_string(source, token, expected);
  check_range(source, token.place, key, value);
  // Names of choices are printed and compared in lower case.
  if (key.type == KeyType::string && !key.allowed.empty()) {
    value = lower(std::get<std::string>(value));
  }
  return value;
}

std::vector<Element> Claims::take(const Source& source, const Key& key,
                                  const Assignment& assignment) {
  const std::vector<Element> elements =
      distribute(source, assignment, key.elements, key.is_array());
  std::vector<int64_t> claimed = {1};
  if (key.is_array()) claimed.clear();
  for (const Element& element : elements)
    if (key.is_array()) claimed.push_back(element.index);
  for (const int64_t index : claimed) {
    const auto [earlier, is_new] =
        places_.insert({{key.full_name(), index}, source.at(assignment.place)});
    if (!is_new)
      source.fail(assignment.place,
                  key.full_name() + " is given twice, first at " + earlier->second);
  }
  return elements;
}

void Binder::bind(const Source& source, const Key& key, const Assignment& assignment,
                  const std::string& where) {
  const std::vector<Element> elements = claims_.take(source, key, assignment);
  if (elements.empty()) return;

  if (key.is_array()) {
    // Elements start blank at the first assignment of this layer, the default 'none' included.
    std::vector<std::string>& list = lists_[key.full_name()];
    list.resize(static_cast<size_t>(key.elements));
    for (const Element& element : elements) {
      const KeyValue value = read_scalar(source, key, *element.token);
      const auto* integer = std::get_if<int64_t>(&value);
      list[static_cast<size_t>(element.index - 1)] =
          integer != nullptr ? std::to_string(*integer) : std::get<std::string>(value);
    }
    key.set(deck_.config, key.type == KeyType::integers
                              ? join_integers(list)
                              : join_names(source, elements[0].token->place, key, list));
  } else {
    key.set(deck_.config, read_scalar(source, key, *elements[0].token));
  }
  deck_.origins[key_index(key)] = {kind_, where.empty() ? source.at(assignment.place) : where};
}

void Binder::bind(const Source& source, const std::vector<Group>& groups,
                  const std::string& where) {
  for (const Group& group : groups) {
    if (!is_group(group.name)) fail_unknown_group(source, group.place, group.name);
    for (const Assignment& assignment : group.assignments) {
      bind(source, known_key(source, assignment.place, group.name, assignment.key), assignment,
           where);
    }
  }
}

std::vector<Token> parse_setting_value(const Source& source, const Key& key,
                                       const std::string& text) {
  const bool is_text = key.type == KeyType::string || key.type == KeyType::list;
  const bool is_quoted = !text.empty() && (text[0] == '\'' || text[0] == '"');
  if (is_text && !is_quoted) {
    Token token;
    token.kind = Token::Kind::string;
    token.text = text;
    return {token};
  }
  const std::vector<Token> values = parse_value_list(source, text);
  if (values.empty() || values[0].kind == Token::Kind::null) {
    source.fail({}, key.full_name() + " has no value; it takes " + allowed_text(key));
  }
  return values;
}

Source command_line_source(const std::string& setting) {
  constexpr size_t longest = 60;
  const size_t shown = std::min(longest, setting.find_first_of(std::string("\n\0", 2)));
  return {"command line: " + setting.substr(0, shown) + (shown < setting.size() ? "..." : ""),
          false};
}

SettingText split_setting(const Source& source, const std::string& text, const std::string& form) {
  check_characters(source, text);
  const size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals)
    source.fail({}, "'" + text + "' is not of the form " + form);
  return {lower(trim(text.substr(0, dot))), lower(trim(text.substr(dot + 1, equals - dot - 1))),
          trim(text.substr(equals + 1))};
}

Setting parse_setting(const Source& source, const std::string& text) {
  if (text.find_first_of("\r\n") != std::string::npos)
    source.fail({}, "a line end has no place in an override");
  const SettingText parts = split_setting(source, text, "group.key=value, as in run.steps=20");
  if (!is_group(parts.group)) fail_unknown_group(source, {}, parts.group);
  Setting out;
  out.source = source;
  out.key = &known_key(source, {}, parts.group, parts.key);
  out.assignment.key = parts.key;
  out.assignment.values = parse_setting_value(source, *out.key, parts.value);
  return out;
}

}  // namespace gptbench
