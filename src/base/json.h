// JSON text of values, in ASCII but for the letters of other scripts. Each function returns one
// complete JSON value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gptbench {

// In quotes. Control characters are escaped; a byte that is no UTF-8 becomes U+FFFD.
std::string json(std::string_view text);
inline std::string json(const std::string& text) {
  return json(std::string_view(text));
}
inline std::string json(const char* text) {
  return json(std::string_view(text));
}
// With as many digits as tell it from every other number; NaN and infinities, which JSON does not
// have, are null.
std::string json(double value);
std::string json(int64_t value);
std::string json(bool value);

// Elements, each a JSON value: "[1, 2]".
std::string json_array(const std::vector<std::string>& elements);
template <class T>
std::string json(const std::vector<T>& values) {
  std::vector<std::string> elements;
  for (const T& value : values) elements.push_back(json(value));
  return json_array(elements);
}

// {"name": value, ...} in the order in which members are added.
class JsonObject {
 public:
  template <class T>
  JsonObject& add(std::string_view name, const T& value) {
    return add_json(name, json(value));
  }
  // `value` is a JSON value.
  JsonObject& add_json(std::string_view name, const std::string& value);
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace gptbench
