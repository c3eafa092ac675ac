#include "post/svg_text.h"

#include <algorithm>

#include "base/text.h"

namespace gptbench {
namespace {

// Pixels per character.
constexpr double character = 0.58 * text_size;

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;  // UTF-8
}

// Bytes of the characters from the beginning on that fit `width`.
size_t fitting(const std::string& text, double width) {
  size_t end = 0;
  for (; end < text.size(); ++end)
    if (begins_character(text[end]) && (width -= character) < 0.0) break;
  return end;
}

// The lines of a label, broken behind the parts of a name.
std::vector<std::string> lines_of(std::string text) {
  constexpr size_t max_lines = 8;
  std::vector<std::string> lines;
  while (width_of(text) > label_width && lines.size() + 1 < max_lines) {
    const size_t most = fitting(text, label_width), part = text.find_last_of(" -_/", most - 1);
    const size_t end = part == std::string::npos ? most : part + 1;
    lines.push_back(text.substr(0, end));
    text.erase(0, end);
  }
  lines.push_back(cut_to(text, label_width));
  return lines;
}

}  // namespace

double width_of(const std::string& text) {
  return character * static_cast<double>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string cut_to(const std::string& text, double width) {
  if (width_of(text) <= width) return text;
  return text.substr(0, fitting(text, width - 3.0 * character)) + "...";
}

std::vector<std::vector<std::string>> label_lines(
    const std::vector<std::pair<double, std::string>>& labels) {
  std::vector<std::vector<std::string>> all;
  std::vector<size_t> tall;
  for (const auto& [at, label] : labels) {
    all.push_back(lines_of(label));
    if (all.back().size() > lines_of_row) tall.push_back(all.size() - 1);
  }
  if (tall.size() < 2) return all;
  const std::string& first = labels[tall.front()].second;
  size_t alike = first.size();
  for (const size_t i : tall)
    while (labels[i].second.compare(0, alike, first, 0, alike) != 0) --alike;
  const size_t part = first.substr(0, alike).rfind('-');
  if (part == std::string::npos) return all;
  for (const size_t i : tall) all[i] = lines_of("..." + labels[i].second.substr(part + 1));
  return all;
}

std::vector<std::string> wrapped(const std::string& text, double width) {
  std::vector<std::string> lines;
  for (const std::string& word : split(text, ' ')) {
    if (!lines.empty() && width_of(lines.back() + " " + word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(cut_to(word, width));
  }
  return lines;
}

}  // namespace gptbench
