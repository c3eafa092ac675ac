// Namelist files whose groups are structs: input/devices.in, input/classes.in, machine and software
// profiles, the specifications of gptpost accept. A table names the key of each member; messages
// are those of decks.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "deck/binder.h"

namespace gptbench {

// A key of a group and the member of T that holds its value. An array takes up to max_values.
template <class T>
struct MemberKey {
  static constexpr int64_t max_values = 64;
  const char* name;
  std::variant<std::string T::*, double T::*, std::vector<std::string> T::*,
               std::vector<double> T::*>
      member;
  const char* allowed = "";  // texts, in lower case with commas between them; "": any
  bool may_be_zero = false;  // numbers are positive otherwise
  double max = 1e9;
  bool is_whole = false;     // a number without a fraction
  bool is_optional = false;  // for those who ask that every key is given: not this one

  // As the key table of decks describes keys.
  Key described(const std::string& group) const {
    Key key;
    key.group = group;
    key.name = name;
    key.type = member.index() % 2 == 0 ? KeyType::string : KeyType::real;
    key.allowed = split(allowed, ',');
    key.min_open = !may_be_zero;
    key.max = max;
    key.elements = member.index() >= 2 ? max_values : 1;
    return key;
  }
};

template <class V>
void put_element(V& member, int64_t, const KeyValue& value) {
  member = std::get<V>(value);
}
template <class V>
void put_element(std::vector<V>& member, int64_t index, const KeyValue& value) {
  member.resize(std::max(member.size(), static_cast<size_t>(index)));
  member[static_cast<size_t>(index - 1)] = std::get<V>(value);
}

// The struct of a group; members without a key keep their default. `what` stands in messages: "of a
// device". Throws Error(Exit::usage) with the place of an unknown key, of one given twice, or of a
// value that is not allowed.
template <class T>
T read_members(const Source& source, const Group& group, const std::vector<MemberKey<T>>& keys,
               const std::string& what) {
  T object{};
  Claims claims;
  for (const Assignment& assignment : group.assignments) {
    const auto row = std::find_if(keys.begin(), keys.end(), [&](const MemberKey<T>& each) {
      return assignment.key == each.name;
    });
    if (row == keys.end()) {
      std::vector<std::string> names;
      for (const MemberKey<T>& each : keys) names.push_back(each.name);
      source.fail(assignment.place,
                  "unknown key '" + assignment.key + "' " + what + key_hint(assignment.key, names));
    }
    const Key key = row->described(group.name);
    for (const Element& element : claims.take(source, key, assignment)) {
      const KeyValue value = read_scalar(source, key, *element.token);
      if (const auto* number = std::get_if<double>(&value);
          row->is_whole && number != nullptr && *number != std::floor(*number))
        source.fail(assignment.place, key.full_name() + " = " + format_real(*number) +
                                          " is not allowed; allowed: whole numbers");
      std::visit([&](const auto member) { put_element(object.*member, element.index, value); },
                 row->member);
    }
  }
  return object;
}

// The lines of a group that state the object: "  key = value". What is empty, or 0 where that is no
// value, is left out. A comment stands behind the keys that `comments` names.
template <class T>
std::string members_text(const T& object, const std::vector<MemberKey<T>>& keys,
                         const std::map<std::string, std::string>& comments) {
  struct Written {
    std::string operator()(double value) const { return format_real(value); }
    std::string operator()(const std::string& value) const { return format_string(value); }
  };
  const Written written;
  std::string text;
  for (const MemberKey<T>& key : keys) {
    std::vector<std::string> values;
    std::visit(
        [&](const auto member) {
          if constexpr (std::is_same_v<decltype(member), std::string T::*const>) {
            if (!(object.*member).empty()) values.push_back(written(object.*member));
          } else if constexpr (std::is_same_v<decltype(member), double T::*const>) {
            const bool has_zero = key.may_be_zero && !key.is_optional;
            if (has_zero || object.*member != 0.0) values.push_back(written(object.*member));
          } else {
            for (const auto& each : object.*member) values.push_back(written(each));
          }
        },
        key.member);
    if (values.empty()) continue;
    const auto comment = comments.find(key.name);
    text += std::string("  ") + key.name + " = " + join(values, ", ") +
            (comment == comments.end() ? "" : "  ! " + comment->second) + "\n";
  }
  return text;
}

}  // namespace gptbench
