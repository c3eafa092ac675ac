#include "base/text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace gptbench {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

size_t edit_distance(const std::string& a, const std::string& b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> d((a.size() + 1) * width);
  for (size_t i = 0; i <= a.size(); ++i) d[i * width] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = d[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      size_t best = std::min({d[(i - 1) * width + j] + 1, d[i * width + j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, d[(i - 2) * width + j - 2] + 1);
      d[i * width + j] = best;
    }
  }
  return d.back();
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> fields;
  while (true) {
    const size_t at = text.find(separator);
    std::string field = trim(text.substr(0, at));
    if (!field.empty()) fields.push_back(std::move(field));
    if (at == std::string_view::npos) return fields;
    text.remove_prefix(at + 1);
  }
}

std::vector<int64_t> integers_of(std::string_view list) {
  std::vector<int64_t> values;
  for (const std::string& word : split(list, ',')) values.push_back(std::stoll(word));
  return values;
}

std::vector<int> numbers_of_list(const std::string& list) {
  constexpr int most = 1 << 20;
  std::vector<int> numbers;
  const char* at = list.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    if (end == at || first < 0 || first > most) return {};
    long last = first;
    at = end;
    if (*at == '-') {
      last = std::strtol(at + 1, &end, 10);
      if (end == at + 1 || last < first || last > most) return {};
      at = end;
    }
    for (long number = first; number <= last; ++number) numbers.push_back(static_cast<int>(number));
    if (*at == ',') {
      ++at;
    } else if (*at != '\0') {
      return {};
    }
  }
  return numbers;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string hanging(const std::string& lead, const std::string& text) {
  constexpr size_t width = 80;
  const std::string indent(lead.size(), ' ');
  std::string out, line = lead;
  bool fresh = true;
  for (const std::string& word : split(text, ' ')) {
    if (!fresh && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
  }
  return out + line + "\n";
}

std::string printed(const char* format, ...) {
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace gptbench
