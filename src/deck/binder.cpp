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
  const bool has_none = std::find(names.begin(), names.end(), "none") != names.end();
  if (has_none && names.size() > 1) {
    source.fail(place, key.full_name() + ": 'none' stands alone");
  }
  return names.empty() ? "none" : join(names, ",");
}

// The same of integers: all up to the last that is given, -1 for those that are not.
std::string join_integers(std::vector<std::string> elements) {
  while (!elements.empty() && elements.back().empty()) elements.pop_back();
  for (std::string& element : elements)
    if (element.empty()) element = "-1";
  return join(elements, ",");
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

void fail_unknown_key(const Source& source, Place place, const std::string& group,
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

KeyValue read_scalar(const Source& source, const Key& key, const Token& token) {
  const std::string expected = key.full_name() + " takes " + allowed_text(key);
  KeyValue value;
  switch (key.type) {
    case KeyType::integer:
    case KeyType::integers:
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

void Binder::bind(const Source& source, const Key& key, const Assignment& assignment,
                  const std::string& where) {
  const bool is_array = key.is_array();
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

void Binder::claim(const Source& source, const Key& key, int64_t element, Place place) {
  const auto [earlier, is_new] = given_.insert({{key.full_name(), element}, source.at(place)});
  if (is_new) return;
  source.fail(place, key.full_name() + " is given twice, first at " + earlier->second);
}

void Binder::bind(const Source& source, const std::vector<Group>& groups,
                  const std::string& where) {
  for (const Group& group : groups) {
    if (!is_group(group.name)) fail_unknown_group(source, group.place, group.name);
    for (const Assignment& assignment : group.assignments) {
      const Key* key = find_key(group.name, assignment.key);
      if (key == nullptr) fail_unknown_key(source, assignment.place, group.name, assignment.key);
      bind(source, *key, assignment, where);
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

Source command_line_source(int number) {
  return {"command line: argument " + std::to_string(number), false};
}

Setting parse_setting(const Source& source, const std::string& text) {
  Setting out;
  out.source = source;
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
  out.assignment.values = parse_setting_value(source, *out.key, value);
  return out;
}

}  // namespace gptbench
