// The resolved deck as printed at the start of a run and kept in the result file.
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

std::string keys_that_were_set(const Deck& deck) {
  std::string out;
  for (const KeyGroup& group : key_groups()) {
    std::vector<std::string> settings;
    for (const Key& key : key_table())
      if (key.group == group.name && deck.origins[key_index(key)].kind > Origin::Kind::preset)
        settings.push_back(key.name + "=" + format_value(key, key.get(deck.config)));
    std::string lead = "  &" + group.name;
    lead.resize(16, ' ');
    if (!settings.empty()) out += hanging(lead, join(settings, ", "));
  }
  return out;
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
