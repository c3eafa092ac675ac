// Choices that users make by name: enums whose enumerators are the allowed texts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace gptbench {

// Declares an enum class and its texts, which decks and command lines are read by and which
// --keys, messages and result files show:
//   GPTBENCH_CHOICE(CommLibrary, auto_, mpi, nccl)  // 'auto', 'mpi', 'nccl'
// Underscores at the ends, which make identifiers of `auto` and `1f1b`, are not part of the text.
#define GPTBENCH_CHOICE(Enum, ...) GPTBENCH_CHOICE_OF_LIST(Enum, __VA_ARGS__)
#define GPTBENCH_CHOICE_OF_LIST(Enum, ...)                                    \
  enum class Enum : uint8_t { __VA_ARGS__ };                                  \
  inline const std::vector<std::string>& names_of(Enum) {                     \
    static const std::vector<std::string> names = choice_names(#__VA_ARGS__); \
    return names;                                                             \
  }

// "auto_, mpi" -> {"auto", "mpi"}.
inline std::vector<std::string> choice_names(const std::string& enumerators) {
  std::vector<std::string> names = split(enumerators, ',');
  for (std::string& name : names) {
    if (name.front() == '_') name.erase(0, 1);
    if (name.back() == '_') name.pop_back();
  }
  return names;
}

template <typename Enum, typename = decltype(names_of(Enum{}))>
const std::string& name_of(Enum value) {
  return names_of(value)[static_cast<size_t>(value)];
}

// The value of a text that the caller has found to be one of names_of(Enum{}).
template <typename Enum>
Enum choice_of(const std::string& name) {
  const std::vector<std::string>& names = names_of(Enum{});
  const auto found = std::find(names.begin(), names.end(), name);
  GPTBENCH_CHECK(found != names.end(), "no choice is named " + name);
  return static_cast<Enum>(found - names.begin());
}

template <typename T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace gptbench
