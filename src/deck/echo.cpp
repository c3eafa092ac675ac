// The resolved deck as printed at the start of a run and kept in the result file.
#include "deck/deck.h"
#include "deck/values.h"

namespace gptbench {
namespace {

constexpr size_t width = 80;
constexpr size_t mark_column = 62;

std::string mark_of(Origin::Kind kind) {
  switch (kind) {
    case Origin::Kind::default_value:
      return "! default";
    case Origin::Kind::preset:
      return "! preset";
    case Origin::Kind::command_line:
      return "! command line";
    case Origin::Kind::deck:
    case Origin::Kind::sweep:  // its deck is written with the row's values
      break;
  }
  return "";
}

// Breaks a line that is too long inside its string, where a line end does not count; never inside
// a doubled quote or a character of several bytes. `line` is "  key = 'text'".
std::string wrap_string(const std::string& line) {
  std::string out;
  size_t column = 0;
  for (size_t i = 0; i < line.size();) {
    size_t length = 1;
    if (line[i] == '\'' && i + 1 < line.size() && line[i + 1] == '\'') length = 2;
    while (i + length < line.size() &&
           (static_cast<unsigned char>(line[i + length]) & 0xc0) == 0x80) {
      ++length;
    }
    if (column + length > width) {
      out += '\n';
      column = 0;
    }
    out += line.substr(i, length);
    column += length;
    i += length;
  }
  return out;
}

// Breaks a line of numbers that is too long after commas.
std::string wrap_numbers(const std::string& line) {
  std::string out;
  size_t column = 0;
  for (size_t begin = 0; begin < line.size();) {
    const size_t comma = line.find(", ", begin);
    const size_t end = comma == std::string::npos ? line.size() : comma + 2;
    if (column + end - begin > width) {
      out += "\n    ";
      column = 4;
    }
    out += line.substr(begin, end - begin);
    column += end - begin;
    begin = end;
  }
  return out;
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

}  // namespace gptbench
