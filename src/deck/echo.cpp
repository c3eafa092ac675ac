// The resolved deck as printed at the start of a run and kept in the result file.
#include <algorithm>

#include "base/text.h"
#include "deck/deck.h"
#include "deck/values.h"

namespace gptbench {
namespace {

constexpr size_t width = 80;
constexpr size_t mark_column = 62;

// The deck of a sweep's row is written with the row's values: they are not marked.
const char* mark_of(Origin::Kind kind) {
  constexpr const char* marks[] = {"! default", "! class", "! preset", "", "", "! command line"};
  return marks[static_cast<size_t>(kind)];
}

// Breaks a line that is too long between pieces; piece(i) is the length of the one at i.
template <class Piece>
std::string wrapped(const std::string& line, const std::string& indent, const Piece& piece) {
  std::string out;
  size_t column = 0;
  for (size_t i = 0; i < line.size();) {
    const size_t length = piece(i);
    if (column + length > width) {
      out += "\n" + indent;
      column = indent.size();
    }
    out += line.substr(i, length);
    column += length;
    i += length;
  }
  return out;
}

// Inside the string of "  key = 'text'", where a line end does not count; never inside a doubled
// quote or a character of several bytes.
std::string wrap_string(const std::string& line) {
  return wrapped(line, "", [&](size_t i) {
    size_t length = line.compare(i, 2, "''") == 0 ? 2 : 1;
    while (i + length < line.size() &&
           (static_cast<unsigned char>(line[i + length]) & 0xc0) == 0x80)
      ++length;
    return length;
  });
}

// After commas.
std::string wrap_numbers(const std::string& line) {
  return wrapped(line, "    ", [&](size_t i) {
    const size_t comma = line.find(", ", i);
    return (comma == std::string::npos ? line.size() : comma + 2) - i;
  });
}

std::string with_mark(std::string line, bool is_text, const std::string& mark) {
  if (line.size() > width) line = is_text ? wrap_string(line) : wrap_numbers(line);
  const size_t last_line = line.size() - (line.rfind('\n') + 1);  // npos + 1 is 0
  if (mark.empty()) return line + "\n";
  if (last_line + 1 + mark.size() > width)
    return line + "\n" + std::string(mark_column, ' ') + mark + "\n";
  const size_t pad = last_line < mark_column ? mark_column - last_line : 1;
  return line + std::string(pad, ' ') + mark + "\n";
}

// A key that the user set.
struct GivenKey {
  std::string group, text;
  bool is_default;
};

// One paragraph per group.
std::string paragraphs(const std::vector<GivenKey>& settings) {
  std::string out;
  for (size_t s = 0; s < settings.size();) {
    const std::string& group = settings[s].group;
    std::vector<std::string> texts;
    for (; s < settings.size() && settings[s].group == group; ++s)
      texts.push_back(settings[s].text);
    std::string lead = "  &" + group;
    lead.resize(16, ' ');
    out += hanging(lead, join(texts, ", "));
  }
  return out;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

std::string echo(const Deck& deck) {
  return echo(deck, deck.config);
}

std::string echo(const Deck& deck, const Config& resolved) {
  const std::string rule = "! " + std::string(width - 2, '=') + "\n";
  std::string out = rule;
  for (const KeyGroup& group : key_groups()) {
    out += "&" + group.name + "\n";
    for (const Key& key : key_table()) {
      if (key.group != group.name) continue;
      const KeyValue value = key.get(resolved);
      const bool is_filled_in = value != key.get(deck.config);
      const std::string mark =
          is_filled_in ? "! resolved" : mark_of(deck.origins[key_index(key)].kind);
      out += with_mark("  " + key.name + " = " + format_value(key, value),
                       key.type != KeyType::integers, mark);
    }
    out += "/\n";
  }
  return out + rule;
}

std::string keys_that_were_set(const Deck& deck, size_t max_lines) {
  std::vector<GivenKey> settings;
  for (const Key& key : key_table()) {
    if (deck.origins[key_index(key)].kind <= Origin::Kind::preset) continue;
    const KeyValue value = key.get(deck.config);
    settings.push_back(
        {key.group, key.name + "=" + format_value(key, value), value == default_value(key)});
  }
  const size_t all = settings.size();
  std::string out = paragraphs(settings);
  if (lines_of(out) <= max_lines) return out;
  settings.erase(std::remove_if(settings.begin(), settings.end(),
                                [](const GivenKey& setting) { return setting.is_default; }),
                 settings.end());
  for (;;) {
    const size_t left_out = all - settings.size();
    out = paragraphs(settings);
    if (left_out > 0)
      out += "  and " + std::to_string(left_out) + " more, which --verbose prints\n";
    if (lines_of(out) <= max_lines || settings.empty()) return out;
    settings.pop_back();
  }
}

std::string deck_text(const Deck& deck) {
  std::string out;
  for (const KeyGroup& group : key_groups()) {
    std::string keys;
    for (const Key& key : key_table()) {
      if (key.group != group.name || deck.origins[key_index(key)].kind < Origin::Kind::deck)
        continue;
      keys += "  " + key.name + " = " + format_value(key, key.get(deck.config)) + "\n";
    }
    if (!keys.empty()) out += "&" + group.name + "\n" + keys + "/\n";
  }
  return out;
}

}  // namespace gptbench
