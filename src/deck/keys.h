// The key table: every key of a deck with its type, range, unit and one-line documentation. Parser,
// echo, --keys, doc/deck.md and the attributes of /config in a result file are generated from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "deck/config.h"

namespace gptbench {

enum class KeyType {
  integer,
  real,
  logical,
  string,
  list,      // an array of strings, kept in Config as one with commas: "optimizer,parameters"
  integers,  // an array of integers, kept likewise: "4,4,4,0", -1 for what is not given before the
             // last that is; "" where none is
};

// Value of a key: int64_t for integer, double for real, bool for logical; text for string, list and
// integers.
using KeyValue = std::variant<int64_t, double, bool, std::string>;

// Text of a list of choices without any.
inline constexpr const char* empty_list = "none";

// Fields of a group hold what a KeyValue holds, or choices, which a KeyValue holds as text: one, or
// a list with commas, empty_list where there is none.
template <typename T>
KeyValue get_value(const T& field) {
  if constexpr (std::is_enum_v<T>)
    return name_of(field);
  else
    return field;
}
template <typename Enum>
KeyValue get_value(const std::vector<Enum>& field) {
  std::vector<std::string> names;
  for (const Enum value : field) names.push_back(name_of(value));
  return names.empty() ? empty_list : join(names, ",");
}
template <typename T>
void set_value(T& field, const KeyValue& value) {
  if constexpr (std::is_enum_v<T>)
    field = choice_of<T>(std::get<std::string>(value));
  else
    field = std::get<T>(value);
}
template <typename Enum>
void set_value(std::vector<Enum>& field, const KeyValue& value) {
  field.clear();
  for (const std::string& name : split(std::get<std::string>(value), ','))
    if (name != empty_list) field.push_back(choice_of<Enum>(name));
}

struct Key {
  std::string group;
  std::string name;
  KeyType type;
  std::function<KeyValue(const Config&)> get;
  std::function<void(Config&, const KeyValue&)> set;

  // Numbers: min <= value <= max, each bound left out of the range where `open` says so.
  double min = 0.0;
  double max = 0.0;
  bool min_open = false;
  bool max_open = false;
  // Strings and elements of lists; empty: any text.
  std::vector<std::string> allowed;
  int64_t elements = 1;  // of an array, at most; 1: no array

  bool is_array() const { return elements > 1; }

  std::string unit;  // "" for names and pure numbers
  std::string doc;   // one line, no final stop

  std::string full_name() const { return group + "." + name; }
};

struct KeyGroup {
  std::string name;
  std::string doc;
};

// Groups and keys in the order of the echo; keys of one group stand together.
const std::vector<KeyGroup>& key_groups();
const std::vector<Key>& key_table();
// Row of key_table(); null where there is none. Lower case.
const Key* find_key(const std::string& group, const std::string& name);
// Position in key_table(), for tables that run parallel to it.
size_t key_index(const Key& key);

// "1 to 100000", "0 <= value < 1", "'gpt', 'bert'", ".true. or .false.".
std::string allowed_text(const Key& key);
// Value of the Config{} that a deck starts from.
KeyValue default_value(const Key& key);
// In namelist syntax: 12, 0.0006, .true., 'gpt'; arrays as 'optimizer', 'parameters' or 4, 4.
std::string format_value(const Key& key, const KeyValue& value);

// Calls visit(key, value) for every key in the order of the table; for the result file.
void for_each_key(const Config& config,
                  const std::function<void(const Key&, const KeyValue&)>& visit);

// One group of the key reference.
struct ReferenceRow {
  const Key* key;
  std::string default_text;  // in namelist syntax
};
struct ReferenceGroup {
  std::string name, doc;
  std::vector<ReferenceRow> rows;
};

// The reference as a text of 80 columns (--keys) and as Markdown (doc/deck.md): the groups of a
// run, then `further` ones, which other tables define (&sweep). `word`: only keys that have it in
// their name, "group.key", or meaning, whatever the case; throws Error(Exit::usage) where none has.
std::string keys_text(const std::vector<ReferenceGroup>& further, const std::string& word = "");
std::string keys_markdown(const std::vector<ReferenceGroup>& further);
// The same for the completion of shells: a line per key, "group.key=", then its values where they
// are few, and lines of the options that name embedded files. No value has a blank.
std::string keys_words(const std::vector<ReferenceGroup>& further);

}  // namespace gptbench
