#include "deck/namelist.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"

namespace gptbench {
namespace {

bool is_blank(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(int c) {
  return c >= '0' && c <= '9';
}
bool is_letter(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name_character(int c) {
  return is_letter(c) || is_digit(c) || c == '_';
}
bool is_quote(int c) {
  return c == '\'' || c == '"';
}
bool is_comma(int c) {
  return c == ',' || c == ';';
}
constexpr int end_of_text = -1;

// Characters that may follow a value, a group name or '*' in Fortran's list-directed input.
bool is_separator(int c) {
  return is_blank(c) || is_comma(c) || c == '/' || c == '!' || c == end_of_text;
}

// "'x'" for what a terminal can show, "end of file", or the code of a character that it cannot.
std::string describe(int c) {
  if (c == end_of_text) return "the end of the text";
  if (c > 0x20 && c < 0x7f) return std::string("'") + static_cast<char>(c) + "'";
  if (is_blank(c)) return c == '\n' || c == '\r' ? "the end of the line" : "a blank";
  return printed("character 0x%02x", static_cast<unsigned>(c) & 0xffu);
}

// Text with a reading position that knows its line and column.
class Cursor {
 public:
  Cursor(const Source& source, std::string_view text) : source_(&source), text_(text) {}

  int peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? static_cast<unsigned char>(text_[at_ + ahead])
                                      : end_of_text;
  }
  int next() {
    const int c = peek();
    if (c == end_of_text) return c;
    ++at_;
    if (c == '\n') {
      ++place_.line;
      place_.column = 1;
    } else if ((c & 0xc0) != 0x80) {  // not a continuation byte of UTF-8
      ++place_.column;
    }
    return c;
  }
  Place place() const { return place_; }

  void skip_line() {
    while (peek() != '\n' && peek() != end_of_text) next();
  }
  // Blanks, line ends and comments.
  void skip_blanks() {
    while (is_blank(peek()) || peek() == '!') {
      if (peek() == '!') {
        skip_line();
      } else {
        next();
      }
    }
  }
  std::string read_name() {
    std::string word;
    while (is_name_character(peek())) word += static_cast<char>(next());
    return lower(word);
  }

  [[noreturn]] void fail(Place place, const std::string& message) const {
    source_->fail(place, message);
  }

 private:
  const Source* source_;
  std::string_view text_;
  size_t at_ = 0;
  Place place_{1, 1};
};

// From the opening quote to the closing one.
std::string read_string(Cursor& in) {
  const Place start = in.place();
  const int quote = in.next();
  std::string text;
  for (;;) {
    const int c = in.next();
    if (c == end_of_text) {
      in.fail(start, std::string("string is not closed: its ") + static_cast<char>(quote) +
                         " is missing; quotes inside a string are doubled");
    }
    if (c == quote) {
      if (in.peek() != quote) break;
      in.next();
    } else if (c == '\n' || c == '\r') {
      continue;
    }
    text += static_cast<char>(c);
  }
  if (!is_separator(in.peek())) {
    in.fail(in.place(), "expected a blank or ',' after the string, found " + describe(in.peek()));
  }
  return text;
}

// True where a key begins rather than a value: a name, then '(' at once, or '=' after blanks.
bool at_key(Cursor in) {
  if (!is_letter(in.peek())) return false;
  in.read_name();
  if (in.peek() == '(' || in.peek() == '%') return true;
  if (in.peek() == '!') return false;
  in.skip_blanks();
  return in.peek() == '=';
}

bool at_group_end(const Cursor& in) {
  return in.peek() == '/' || in.peek() == '&' || in.peek() == '$' || in.peek() == end_of_text;
}

// "digits*" in front of a value; 1 and nothing read where there is none.
void read_repeat(Cursor& in, Token& token) {
  size_t digits = 0;
  while (is_digit(in.peek(digits))) ++digits;
  if (digits == 0 || in.peek(digits) != '*') return;
  constexpr int64_t limit = 200000000;  // gfortran's own; far beyond any array of a deck
  int64_t count = 0;
  for (size_t i = 0; i < digits; ++i) {
    count = std::min(limit + 1, 10 * count + (in.next() - '0'));
  }
  in.next();
  if (count == 0) in.fail(token.place, "repeat count is 0; it must be at least 1");
  if (count > limit) in.fail(token.place, "repeat count is too large");
  token.repeat = count;
  token.repeated = true;
}

Token read_value(Cursor& in) {
  Token token;
  token.place = in.place();
  read_repeat(in, token);
  if (token.repeated && is_separator(in.peek())) return token;
  if (is_quote(in.peek())) {
    token.kind = Token::Kind::string;
    token.text = read_string(in);
    return token;
  }
  token.kind = Token::Kind::word;
  while (!is_separator(in.peek())) {
    const int c = in.peek();
    if (c == '=' || c == '(' || c == ')' || c == '&' || c == '$' || c == '?' || c == '%' ||
        is_quote(c) || c < 0x20 || c >= 0x7f) {
      in.fail(in.place(), "unexpected " + describe(c) +
                              (token.text.empty() ? " where a value is expected"
                                                  : " in the value '" + token.text + "'"));
    }
    token.text += static_cast<char>(in.next());
  }
  return token;
}

std::vector<Token> read_values(Cursor& in) {
  std::vector<Token> values;
  bool value_before = false;  // with no comma since
  for (;;) {
    in.skip_blanks();
    if (is_comma(in.peek())) {
      if (!value_before) {
        Token null;
        null.place = in.place();
        values.push_back(null);
      }
      value_before = false;
      in.next();
    } else if (at_group_end(in) || at_key(in)) {
      return values;
    } else {
      values.push_back(read_value(in));
      value_before = true;
    }
  }
}

int64_t read_index(Cursor& in) {
  const Place start = in.place();
  bool negative = false;
  if (in.peek() == '+' || in.peek() == '-') negative = in.next() == '-';
  if (!is_digit(in.peek())) {
    in.fail(in.place(),
            "expected an integer in the subscript, as in a(2), found " + describe(in.peek()));
  }
  int64_t index = 0;
  while (is_digit(in.peek())) index = std::min<int64_t>(1000000000, 10 * index + (in.next() - '0'));
  if (negative || index == 0) in.fail(start, "subscript must be at least 1");
  return index;
}

void skip_spaces(Cursor& in) {
  while (in.peek() == ' ' || in.peek() == '\t') in.next();
}

// "(i)", "(i:j)", "(i:j:k)" with either bound left out; the cursor stands on '('. Blanks may stand
// around a single index only, as gfortran has it.
Subscript read_subscript(Cursor& in) {
  Subscript subscript;
  subscript.place = in.place();
  subscript.form = Subscript::Form::element;
  in.next();
  skip_spaces(in);
  if (in.peek() != ':') subscript.first = subscript.last = read_index(in);
  if (in.peek() == ':') {
    subscript.form = Subscript::Form::section;
    subscript.last = -1;
    in.next();
    if (in.peek() != ')') subscript.last = read_index(in);
    if (in.peek() == ':') {
      in.next();
      subscript.stride = read_index(in);
    }
  } else {
    skip_spaces(in);
  }
  if (subscript.last != -1 && subscript.last < subscript.first) {
    in.fail(subscript.place, "the section holds no element");
  }
  if (in.peek() == ',') in.fail(in.place(), "arrays of a deck have one subscript");
  if (in.peek() != ')') {
    in.fail(in.place(), "expected ')' after the subscript, found " + describe(in.peek()));
  }
  in.next();
  return subscript;
}

Assignment read_assignment(Cursor& in) {
  Assignment assignment;
  assignment.place = in.place();
  if (!is_letter(in.peek())) {
    const int c = in.peek();
    in.fail(in.place(), "expected a key or the '/' that ends the group, found " + describe(c));
  }
  assignment.key = in.read_name();
  if (in.peek() == '(') assignment.subscript = read_subscript(in);
  in.skip_blanks();
  if (in.peek() != '=') {
    in.fail(in.place(),
            "expected '=' after '" + assignment.key + "', found " + describe(in.peek()));
  }
  in.next();
  assignment.values = read_values(in);
  return assignment;
}

// Items up to and including what ends the group.
void read_group_body(Cursor& in, Group& group) {
  const auto sign = "&" + group.name;
  for (;;) {
    in.skip_blanks();
    while (is_comma(in.peek())) {
      in.next();
      in.skip_blanks();
    }
    const int c = in.peek();
    const Place here = in.place();
    if (c == end_of_text) {
      in.fail(group.place, "group " + sign + " is not ended: its '/' is missing");
    }
    if (c == '/') {
      in.next();
      return;
    }
    if (c == '&' || c == '$') {
      in.next();
      const std::string name = in.read_name();
      if (name == "end" && is_separator(in.peek())) return;
      in.fail(here, "group " + sign + " (line " + std::to_string(group.place.line) +
                        ") is not ended before '" + static_cast<char>(c) + name +
                        "': its '/' is missing");
    }
    group.assignments.push_back(read_assignment(in));
  }
}

}  // namespace

std::string Source::at(Place place) const {
  if (!has_places) return name;
  return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

void Source::fail(Place place, const std::string& message) const {
  throw Error(Exit::usage, at(place) + ": " + message);
}

std::vector<Group> parse_namelist(const Source& source, std::string_view text) {
  check_characters(source, text);
  Cursor in(source, text);
  std::vector<Group> groups;
  std::unordered_map<std::string, int64_t> lines;  // of the groups, by name
  for (;;) {
    while (in.peek() != '&' && in.peek() != '$' && in.peek() != end_of_text) {
      if (in.peek() == '!') {
        in.skip_line();
      } else {
        in.next();
      }
    }
    if (in.peek() == end_of_text) return groups;

    Group group;
    group.place = in.place();
    const int sign = in.next();
    group.name = in.read_name();
    if (group.name.empty() || !is_letter(group.name[0])) {
      if (sign == '$') continue;  // a price in free text, not a group
      in.fail(group.place, "expected the name of a group directly after '&', as in &run");
    }
    if (group.name == "end") continue;  // of a group that '/' has ended
    if (!is_separator(in.peek())) {
      in.fail(in.place(),
              "expected a blank after &" + group.name + ", found " + describe(in.peek()));
    }
    const auto [earlier, is_new] = lines.insert({group.name, group.place.line});
    if (!is_new) {
      in.fail(group.place, "group &" + group.name + " is given twice, first on line " +
                               std::to_string(earlier->second) + "; merge the two");
    }
    read_group_body(in, group);
    groups.push_back(std::move(group));
  }
}

std::vector<Token> parse_value_list(const Source& source, std::string_view text) {
  check_characters(source, text);
  Cursor in(source, text);
  std::vector<Token> values = read_values(in);
  if (in.peek() != end_of_text) {
    in.fail(in.place(), "unexpected " + describe(in.peek()) + " in the value");
  }
  return values;
}

void check_characters(const Source& source, std::string_view text) {
  Cursor in(source, text);
  while (!text.empty()) {
    const int c = in.peek();
    if ((c < 0x20 && !is_blank(c)) || c == 0x7f)
      in.fail(in.place(), describe(c) + (c == 0 ? " (NUL)" : "") +
                              ": a deck is text; was another file given by mistake?");
    const size_t length = utf8_length(text);
    if (length == 0)
      in.fail(in.place(), describe(c) + " is not UTF-8; save the deck as UTF-8 or ASCII");
    for (size_t k = 0; k < length; ++k) in.next();
    text.remove_prefix(length);
  }
}

}  // namespace gptbench
