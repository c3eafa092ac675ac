#include "base/json.h"

#include <cmath>
#include <cstdlib>

#include "base/printable.h"
#include "base/text.h"

namespace gptbench {

std::string json(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const auto second = static_cast<unsigned char>(length == 2 ? text[1] : 0);
    if (length == 0)
      quoted += "\\ufffd";
    else if (first < 0x20 || first == 0x7f)
      quoted += printed("\\u%04x", first);
    else if (first == 0xc2 && second < 0xa0)  // U+0080 to U+009F, which terminals obey
      quoted += printed("\\u%04x", second);
    else if (first == '"' || first == '\\')
      quoted += std::string("\\") + text.front();
    else
      quoted += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + "\"";
}

std::string json(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text;
  for (const int digits : {15, 16, 17}) {
    text = printed("%.*g", digits, value);
    if (std::strtod(text.c_str(), nullptr) == value) break;
  }
  return text;
}

std::string json(int64_t value) {
  return std::to_string(value);
}

std::string json(bool value) {
  return value ? "true" : "false";
}

std::string json_array(const std::vector<std::string>& elements) {
  return "[" + join(elements, ", ") + "]";
}

JsonObject& JsonObject::add_json(std::string_view name, const std::string& value) {
  members_ += (members_.empty() ? "" : ", ") + json(name) + ": " + value;
  return *this;
}

}  // namespace gptbench
