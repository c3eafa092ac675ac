#include "random_deck.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "deck/keys.h"
#include "deck/values.h"

namespace gptbench {
namespace {

// Between two values. Left out are the two places where gfortran 12 reads a null value that the
// standard does not know (doc/deck.md): a comment after a comma, a comma that begins a line.
std::string gap(Dice& dice) {
  const std::string separator =
      dice.pick<std::string>({" ", ",", ", ", " ,", " , ", "\n", ",\n", " ! note, 1 = /\n  ", "\t",
                              ";", "\n\n  ", "  ,   ", "\r\n", ",\r\n", "! x\n"});
  return separator == ";" && !dice.with_semicolons ? "," : separator;
}

// Adds a separator, but behind a comma or '*' no comment (see gap) and no comma: gfortran passes
// over more nulls than a variable has elements only where they stand side by side.
void append(std::string& out, const std::string& separator) {
  const size_t last = out.find_last_not_of(" \t\r\n");
  const bool after_comma =
      last != std::string::npos && std::string(",;*").find(out[last]) != std::string::npos;
  const bool is_blank = separator.find_first_of("!,;") == std::string::npos;
  out += after_comma && !is_blank ? " " : separator;
}

// Between an assignment and the next.
std::string break_between(Dice& dice) {
  return dice.one_in(6) ? dice.pick<std::string>({", ,", ",,", " , ", " ! 'it\n"}) : gap(dice);
}

std::string any_case(Dice& dice, std::string name) {
  const size_t style = dice.below(4);
  for (char& c : name) {
    const bool upper = style == 1 || (style == 2 && dice.one_in(2));
    if (upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string random_integer(Dice& dice) {
  if (dice.one_in(12)) {
    return dice.pick<std::string>(
        {"9223372036854775807", "-9223372036854775808", "0", "-0", "0000000000000000000000012"});
  }
  const std::string sign = dice.pick<std::string>({"", "", "", "+", "-"});
  return sign + std::to_string(dice.below(dice.one_in(3) ? 1000000000 : 100));
}

std::string random_real(Dice& dice) {
  std::string digits = std::to_string(dice.below(dice.one_in(2) ? 10 : 1000000000));
  if (dice.one_in(2)) digits += std::to_string(dice.below(1000000000));
  if (!dice.one_in(4)) {
    digits.insert(dice.below(digits.size() + 1), ".");  // also ".5" and "5."
  }
  if (dice.one_in(2)) {
    digits += dice.pick<std::string>({"e", "E", "d", "D", "q", "Q", ""});
    const bool has_letter = std::isalpha(static_cast<unsigned char>(digits.back())) != 0;
    digits +=
        has_letter ? dice.pick<std::string>({"", "+", "-"}) : dice.pick<std::string>({"+", "-"});
    digits += std::to_string(dice.below(dice.one_in(8) ? 320 : 12));
  }
  return dice.pick<std::string>({"", "", "+", "-"}) + digits;
}

std::string random_logical(Dice& dice) {
  return any_case(dice, dice.pick<std::string>({"t", "f", ".t", ".f", ".t.", ".f.", ".true.",
                                                ".false.", ".true", ".false", ".tea."}));
}

// In quotes, with what is special to the grammar, line ends and UTF-8 inside. Not '&' and '$': a
// Fortran program that looks for another group finds it in strings as well.
std::string quoted(Dice& dice, const std::string& text) {
  const char quote = dice.one_in(2) ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    const bool inside_character = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!inside_character && dice.one_in(25)) out += dice.one_in(2) ? "\n" : "\r\n";
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

std::string random_text(Dice& dice) {
  static const std::vector<std::string> parts = {"a",  "B",  "7", "'",  "\"", "/",  "!", ",", "=",
                                                 ";",  "*",  "(", ")",  ".",  " ",  "é", "→", "%",
                                                 "3*", "''", "?", "\\", "-",  "it", "\t"};
  std::string text;
  const size_t length = dice.below(20);
  for (size_t i = 0; i < length; ++i) text += dice.pick(parts);
  return text;
}

enum class Kind { integer, real, logical, string };

std::string random_value(Dice& dice, Kind kind) {
  switch (kind) {
    case Kind::integer:
      return random_integer(dice);
    case Kind::real:
      return random_real(dice);
    case Kind::logical:
      return random_logical(dice);
    case Kind::string:
      break;
  }
  return quoted(dice, random_text(dice));
}

// Values for up to `size` elements.
std::string random_list(Dice& dice, Kind kind, size_t size) {
  std::string out = dice.pick<std::string>({"", " ", "\n", "  "});
  size_t filled = 0;
  const size_t wanted = 1 + dice.below(size);
  while (filled < wanted) {
    const size_t room = size - filled;
    const std::string separator = filled > 0 ? gap(dice) : "";
    const bool on_new_line = (out + separator).find('\n') != std::string::npos;
    append(out, separator);
    if (dice.one_in(8) && !on_new_line) {  // null value: the next separator is a comma of its own
      out += ",";
      filled += 1;
      if (filled == wanted) break;
      out += random_value(dice, kind);
      filled += 1;
    } else if (dice.one_in(6)) {
      const size_t count = 1 + dice.below(room);
      out += std::to_string(count) + "*" + (dice.one_in(4) ? "" : random_value(dice, kind));
      filled += count;
    } else {
      out += random_value(dice, kind);
      filled += 1;
    }
  }
  return out;
}

std::string random_subscript(Dice& dice, size_t size, size_t& left) {
  left = size;
  if (dice.one_in(2)) return "";
  const size_t first = 1 + dice.below(size);
  left = size - first + 1;
  const std::string blank = dice.one_in(4) ? " " : "";
  const std::string start = "(" + blank + std::to_string(first);
  switch (dice.below(4)) {
    case 0: {
      const size_t last = first + dice.below(left);
      left = last - first + 1;
      return start + ":" + std::to_string(last) + ")";
    }
    case 1: {
      const size_t stride = 1 + dice.below(3);
      const std::string end = start + ":" + std::to_string(size) + ":" + std::to_string(stride);
      left = (size - first) / stride + 1;
      return end + ")";
    }
    case 2:
      return start + ":)";
    default:
      return start + blank + ")";
  }
}

std::string free_text(Dice& dice) {
  return dice.pick<std::string>(
      {"", "", "notes = 3, 'it\n", "! a comment with &run in it\n", "steps = 7 /\n", "\n\n"});
}

std::string end_of_group(Dice& dice) {
  return dice.pick<std::string>({" /\n", "/\n", "\n/\n", " / what follows = 3\n", "\n&end\n",
                                 " &END\n", "\n/ ! the end\n", "\r\n/\r\n"});
}

std::string assign(Dice& dice, const std::string& key, const std::string& value) {
  return any_case(dice, key) + dice.pick<std::string>({"=", " = ", " =", "= ", "\t=\t"}) + value;
}

void shuffle(Dice& dice, std::vector<std::string>& items) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[dice.below(i)]);
}

std::string group(Dice& dice, const std::string& name, const std::vector<std::string>& items) {
  std::string out = "&" + any_case(dice, name) + dice.pick<std::string>({" ", "\n", " ! x\n", ","});
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) append(out, break_between(dice));
    out += items[i];
  }
  return out + end_of_group(dice);
}

std::string random_key_value(Dice& dice, const Key& key) {
  switch (key.type) {
    case KeyType::integer: {
      const auto span = static_cast<size_t>(std::min(key.max - key.min, 1e9));
      return std::to_string(static_cast<int64_t>(key.min) + static_cast<int64_t>(dice.below(span)));
    }
    case KeyType::real: {
      const std::string digits = std::to_string(1 + dice.below(999));
      if (key.max == 1.0) return dice.pick<std::string>({"0.", ".", "0000."}) + digits;
      if (key.min >= 1.0) return digits + dice.pick<std::string>({"", ".", "D+2"});
      return digits + dice.pick<std::string>({"", ".", ".d-3", "e-4", "D+2", "-5"});
    }
    case KeyType::logical:
      return random_logical(dice);
    case KeyType::string:
      break;
    case KeyType::integers: {
      std::string out = std::to_string(dice.below(100));
      for (size_t i = dice.below(8); i > 0; --i) out += gap(dice) + std::to_string(dice.below(100));
      return out;
    }
    case KeyType::list: {
      std::vector<std::string> names(key.allowed.begin() + 1, key.allowed.end());
      shuffle(dice, names);
      std::string out = quoted(dice, names[0]);
      for (size_t i = 1 + dice.below(names.size()); i > 1; --i) {
        out += gap(dice) + quoted(dice, names[i - 1]);
      }
      return out;
    }
  }
  return quoted(dice, key.allowed.empty() ? random_text(dice) : dice.pick(key.allowed));
}

}  // namespace

uint64_t test_seed() {
  const char* given = std::getenv("GPTBENCH_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20240520u;
}

std::string random_probe(Dice& dice) {
  struct Variable {
    const char* name;
    Kind kind;
    size_t size;
  };
  static const std::vector<Variable> variables = {
      {"i", Kind::integer, 1}, {"j", Kind::integer, 1}, {"ia", Kind::integer, 3},
      {"x", Kind::real, 1},    {"y", Kind::real, 1},    {"xa", Kind::real, 4},
      {"l", Kind::logical, 1}, {"m", Kind::logical, 1}, {"la", Kind::logical, 2},
      {"s", Kind::string, 1},  {"u", Kind::string, 1},  {"sa", Kind::string, 3}};
  std::vector<std::string> items;
  for (const Variable& variable : variables) {
    if (dice.one_in(2)) continue;
    size_t room = variable.size;
    std::string key = variable.name;
    if (variable.size > 1) key += random_subscript(dice, variable.size, room);
    items.push_back(assign(dice, key, random_list(dice, variable.kind, room)));
  }
  shuffle(dice, items);
  return free_text(dice) + group(dice, "probe", items);
}

std::string random_deck(Dice& dice) {
  std::vector<std::string> groups;
  for (const KeyGroup& row : key_groups()) {
    if (dice.one_in(3) && !groups.empty()) continue;
    std::vector<std::string> items;
    for (const Key& key : key_table()) {
      // These two set other keys.
      if (key.full_name() == "model.preset" || key.full_name() == "run.class") continue;
      if (key.group != row.name || dice.one_in(2)) continue;
      items.push_back(assign(dice, key.name, random_key_value(dice, key)));
    }
    shuffle(dice, items);
    groups.push_back(free_text(dice) + group(dice, row.name, items));
  }
  shuffle(dice, groups);
  std::string out;
  for (const std::string& text : groups) out += text;
  return out;
}

std::string damage(Dice& dice, std::string text) {
  static const std::string special = "&/'\"=,;()*!.+-0123456789etdx \n:%";
  for (size_t edits = 1 + dice.below(3); edits > 0 && !text.empty(); --edits) {
    const size_t at = dice.below(text.size());
    if (static_cast<unsigned char>(text[at]) >= 0x80) continue;  // inside a character of UTF-8
    const char c = special[dice.below(special.size())];
    switch (dice.below(3)) {
      case 0:
        text.insert(at, 1, c);
        break;
      case 1:
        text.erase(at, 1);
        break;
      default:
        text[at] = c;
    }
  }
  return text + "\n";  // which gfortran 12 asks for after the last group
}

}  // namespace gptbench
