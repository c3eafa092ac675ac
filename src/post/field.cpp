#include "post/field.h"

#include <cstdlib>

#include "base/sort_numbers.h"
#include "base/text.h"
#include "io/result_fields.h"

namespace gptbench {
namespace {

Field to_field(const std::string& value) {
  return value;
}
Field to_field(double value) {
  return value;
}
Field to_field(int64_t value) {
  return static_cast<double>(value);
}
Field to_field(bool value) {
  return value ? 1.0 : 0.0;
}

struct Find {
  const std::string& name;
  std::optional<Field>& found;
  template <class T>
  void operator()(const char* attribute, const T& value) const {
    if (name == attribute) found = to_field(value);
  }
  void operator()(const char* attribute, const std::optional<double>& value) const {
    if (name == attribute && value) found = *value;
  }
};

}  // namespace

std::optional<Field> field_of(const Record& record, const std::string& name) {
  std::optional<Field> found;
  for (const ConfigEntry& entry : record.config)
    if (entry.group + "." + entry.key == name)
      return std::visit([](const auto& value) { return to_field(value); }, entry.value);
  visit_root(record, Find{name, found});
  if (!found) visit_summary(record.summary, Find{name, found});
  return found;
}

std::vector<std::string> attribute_names() {
  std::vector<std::string> names;
  const auto add = [&](const char* name, const auto&) { names.push_back(name); };
  const Record record;
  visit_root(record, add);
  visit_summary(record.summary, add);
  return names;
}

bool field_equals(const Field& field, const std::string& text) {
  if (const auto* own = std::get_if<std::string>(&field)) return *own == text;
  const double number = std::get<double>(field);
  const std::string word = lower(text);
  for (const char* yes : {"true", ".true.", "t"})
    if (word == yes) return number == 1.0;
  for (const char* no : {"false", ".false.", "f"})
    if (word == no) return number == 0.0;
  char* end = nullptr;
  const double wanted = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && number == wanted;
}

bool field_less(const Field& a, const Field& b) {
  const auto *number = std::get_if<double>(&a), *other = std::get_if<double>(&b);
  if (number != nullptr && other != nullptr)
    return number_or_least(*number) < number_or_least(*other);
  return a < b;
}

}  // namespace gptbench
