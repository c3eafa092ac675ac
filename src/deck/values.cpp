#include "deck/values.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text.h"

namespace gptbench {
namespace {

[[noreturn]] void fail_type(const Source& source, const Token& token, const char* type,
                            const std::string& expected) {
  const std::string shown =
      token.kind == Token::Kind::string ? format_string(token.text) : "'" + token.text + "'";
  source.fail(token.place, shown + " is not " + type + (expected.empty() ? "" : "; " + expected));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

size_t count_digits(const std::string& text, size_t from) {
  size_t n = 0;
  while (from + n < text.size() && is_digit(text[from + n])) ++n;
  return n;
}

// A Fortran real as strtod reads it: exponent letter 'e' put in or in place of d or q.
// "" when `word` is no real number.
std::string c_real(const std::string& word) {
  std::string out;
  size_t at = 0;
  if (at < word.size() && (word[at] == '+' || word[at] == '-')) out += word[at++];

  const std::string rest = lower(word.substr(at));
  if (rest == "inf" || rest == "infinity" || rest == "nan") return out + rest;

  const size_t before = count_digits(word, at);
  out += word.substr(at, before);
  at += before;
  size_t after = 0;
  if (at < word.size() && word[at] == '.') {
    after = count_digits(word, at + 1);
    out += word.substr(at, after + 1);
    at += after + 1;
  }
  if (before + after == 0) return "";
  if (at == word.size()) return out;

  const char mark = lower(word.substr(at, 1))[0];
  if (mark == 'e' || mark == 'd' || mark == 'q') {
    ++at;
  } else if (mark != '+' && mark != '-') {
    return "";
  }
  out += 'e';
  if (at < word.size() && (word[at] == '+' || word[at] == '-')) out += word[at++];
  const size_t exponent = count_digits(word, at);
  if (exponent == 0 || at + exponent != word.size()) return "";
  return out + word.substr(at);
}

}  // namespace

int64_t to_integer(const Source& source, const Token& token, const std::string& expected) {
  const std::string& word = token.text;
  const bool has_sign = !word.empty() && (word[0] == '+' || word[0] == '-');
  const size_t first = has_sign ? 1 : 0;
  if (token.kind != Token::Kind::word || first == word.size() ||
      first + count_digits(word, first) != word.size()) {
    fail_type(source, token, "an integer", expected);
  }
  // Accumulated with the sign, so that the least int64 can be written.
  int64_t value = 0;
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t greatest = std::numeric_limits<int64_t>::max();
  for (size_t i = first; i < word.size(); ++i) {
    const int64_t digit = word[i] - '0';
    const bool fits =
        word[0] == '-' ? value >= (least + digit) / 10 : value <= (greatest - digit) / 10;
    if (!fits) {
      source.fail(token.place, "'" + word + "' is beyond the range of a 64-bit integer" +
                                   (expected.empty() ? "" : "; " + expected));
    }
    value = 10 * value + (word[0] == '-' ? -digit : digit);
  }
  return value;
}

double to_real(const Source& source, const Token& token, const std::string& expected) {
  const std::string text = token.kind == Token::Kind::word ? c_real(token.text) : "";
  if (text.empty()) fail_type(source, token, "a real number", expected);
  return std::strtod(text.c_str(), nullptr);
}

bool to_logical(const Source& source, const Token& token, const std::string& expected) {
  if (token.kind == Token::Kind::word) {
    const size_t letter = token.text[0] == '.' ? 1 : 0;
    const std::string first = lower(token.text.substr(letter, 1));
    if (first == "t") return true;
    if (first == "f") return false;
  }
  fail_type(source, token, "a logical value", expected);
}

std::string to_string(const Source& source, const Token& token, const std::string& expected) {
  if (token.kind != Token::Kind::string) {
    fail_type(source, token, ("a string: write " + format_string(token.text)).c_str(), expected);
  }
  return token.text.substr(0, token.text.find_last_not_of(' ') + 1);
}

std::vector<Element> distribute(const Source& source, const Assignment& assignment, int64_t size,
                                bool is_array) {
  const Subscript& subscript = assignment.subscript;
  int64_t first = 1;
  int64_t last = size;
  int64_t stride = 1;
  if (subscript.form != Subscript::Form::none) {
    if (!is_array) {
      source.fail(subscript.place, "'" + assignment.key + "' has one value and no subscript");
    }
    const bool is_section = subscript.form == Subscript::Form::section;
    first = subscript.first;
    if (is_section && subscript.last != -1) last = subscript.last;
    stride = subscript.stride;
    if (first > size || last > size) {
      source.fail(subscript.place, "subscript is out of range; '" + assignment.key + "' has " +
                                       std::to_string(size) + " elements");
    }
  }

  std::vector<Element> elements;
  int64_t index = first;
  for (const Token& token : assignment.values) {
    const bool is_null = token.kind == Token::Kind::null;
    // Commas after the last value are Fortran's nulls beyond the end, which it passes over.
    if (is_null && !token.repeated && index > last) continue;
    const int64_t room = index > last ? 0 : (last - index) / stride + 1;
    if (token.repeat > room) {
      source.fail(token.place, is_array
                                   ? "too many values for '" + assignment.key + "'; it takes " +
                                         std::to_string((last - first) / stride + 1) + " here"
                                   : "'" + assignment.key + "' takes one value");
    }
    for (int64_t i = 0; i < token.repeat; ++i, index += stride) {
      if (!is_null) elements.push_back({index, &token});
    }
  }
  return elements;
}

std::string format_real(double value) {
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    text = printed("%.*g", digits, value);
    if (std::strtod(text.c_str(), nullptr) == value) break;
  }
  // 40, not 4e+01: whole numbers are written out.
  constexpr double most = 1e9;
  if (std::fabs(value) < most && value == std::floor(value)) text = printed("%.0f", value);
  const bool is_integer = text.find_first_not_of("+-0123456789") == std::string::npos;
  return is_integer ? text + ".0" : text;
}

std::string format_logical(bool value) {
  return value ? ".true." : ".false.";
}

std::string format_string(const std::string& value) {
  std::string out = "'";
  for (const char c : value) {
    out += c;
    if (c == '\'') out += c;
  }
  return out + "'";
}

std::string join_quoted(const std::vector<std::string>& values, const std::string& separator) {
  std::vector<std::string> quoted;
  for (const std::string& value : values) quoted.push_back(format_string(value));
  return join(quoted, separator);
}

}  // namespace gptbench
