// Fortran namelist grammar: text -> assignments, each token with its place in the file. Knows no
// key and no type: those come from the key table (deck/keys.h); deck/values.h turns words into
// numbers as Fortran's list-directed input does.
//
//   text outside groups is ignored, as is everything from '!' to the end of its line
//   &name [item ...] /                  '&end' ends a group as well, '$' serves for '&'
//   item:   key = value-list,  key(i) = ...,  key(i:j) = ...,  key(i:j:k) = ...,  i or j may be
//           left out before and after the ':'
//   value:  'string' | "string" | word | nothing (null), each with an optional repeat count "3*"
//   values are separated by blanks, line ends, comments and at most one ',' or ';'; two of these
//   with nothing between enclose a null value, which leaves what was there
//   a quote is doubled inside a string of its own kind; a line end inside a string does not belong
//   to it
//
// Stricter than Fortran in two points: a key (or an element of it) given twice in a group and an
// unknown group are errors; a group given twice, whose second text Fortran would skip in silence,
// counts as its keys given twice. The first is enforced by Claims (deck/binder.h), because `a(1)`
// and `a(2)` are two elements of one key; a repeated group is refused here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gptbench {

// A place in a deck, both counted from 1; a column is a character (a code point of UTF-8).
struct Place {
  int64_t line = 0;
  int64_t column = 0;
};

// Where a text came from, as named in messages: "deck.in:3:5" for a file, "command line:
// run.steps=20" for an override, whose parts need no place.
struct Source {
  std::string name;
  bool has_places = true;

  std::string at(Place place) const;
  // Throws Error(Exit::usage, "<place>: <message>").
  [[noreturn]] void fail(Place place, const std::string& message) const;
};

// One entry of a value list, repeat count already taken off.
struct Token {
  enum class Kind { null, word, string };
  Kind kind = Kind::null;
  std::string text;       // a word as written; a string without its quotes and line ends
  int64_t repeat = 1;     // "3*0.5" -> 3
  bool repeated = false;  // a repeat count was written: tells "1*" and "2*" from a bare comma
  Place place;
};

// Array section as written; one-based, inclusive.
struct Subscript {
  enum class Form { none, element, section };
  Form form = Form::none;
  int64_t first = 1;
  int64_t last = -1;  // -1: to the end (":" left open)
  int64_t stride = 1;
  Place place;
};

struct Assignment {
  std::string key;  // lower case
  Place place;      // of the key
  Subscript subscript;
  std::vector<Token> values;
};

struct Group {
  std::string name;  // lower case
  Place place;       // of its '&'
  std::vector<Assignment> assignments;
};

// Groups in the order of the text. Throws Error(Exit::usage) with file:line:column.
std::vector<Group> parse_namelist(const Source& source, std::string_view text);

// A value list alone, as it stands after '=' in a deck; for command-line overrides. What would end
// the group or begin another key is an error.
std::vector<Token> parse_value_list(const Source& source, std::string_view text);

// Throws Error(Exit::usage) that names the first byte that no deck may hold: NUL and the other
// control characters but tab, line feed and carriage return; bytes that are not UTF-8.
void check_characters(const Source& source, std::string_view text);

}  // namespace gptbench
