#include "sweep/values.h"

#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "deck/values.h"

namespace gptbench {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

struct Word {
  std::string text;
  bool quoted = false;
};

// A reading position in one string.
class Reader {
 public:
  Reader(const std::string& text, const FailText& fail) : text_(text), fail_(fail) {}

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  // Takes `c` where it comes next.
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Up to a blank or one of `stops`, or in quotes, which are doubled inside.
  Word word(const std::string& stops) {
    skip_blanks();
    Word word;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      word.quoted = true;
      const char quote = text_[at_++];
      for (;; ++at_) {
        if (at_ == text_.size()) fail("a quote is not closed in '" + text_ + "'");
        if (text_[at_] != quote) {
          word.text += text_[at_];
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
          word.text += text_[at_++];
        } else {
          ++at_;
          return word;
        }
      }
    }
    while (at_ < text_.size() && !is_blank(text_[at_]) &&
           stops.find(text_[at_]) == std::string::npos)
      word.text += text_[at_++];
    return word;
  }
  std::string rest() const { return text_.substr(at_); }
  [[noreturn]] void fail(const std::string& message) const {
    fail_(message);
    std::abort();  // fail_ throws
  }

 private:
  const std::string& text_;
  const FailText& fail_;
  size_t at_ = 0;
};

// Whole of `text` as a finite number.
bool to_number(const std::string& text, double& value) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eEdD") != std::string::npos)
    return false;
  std::string c = text;
  for (char& letter : c)
    if (letter == 'd' || letter == 'D') letter = 'e';
  char* end = nullptr;
  value = std::strtod(c.c_str(), &end);
  return *end == '\0' && std::isfinite(value);
}

bool is_whole(const std::string& text) {
  return text.find_first_not_of("+-0123456789") == std::string::npos;
}

std::string number_text(double value, bool whole) {
  // Sums of decimal steps leave digits behind the 15th.
  return whole ? printed("%.0f", value) : printed("%.15g", value);
}

// Adds what an unquoted item stands for: itself, or the values of a range.
void add_item(const std::string& item, std::vector<std::string>& values, const FailText& fail) {
  std::vector<std::string> parts(1);
  for (const char c : item) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  const bool geometric = parts.size() == 3 && parts[2].rfind('*', 0) == 0;
  double first = 0.0, last = 0.0, step = 1.0;
  const std::string step_text =
      parts.size() == 3 ? parts[2].substr(geometric ? 1 : 0) : std::string("1");
  if (parts.size() < 2 || parts.size() > 3 || !to_number(parts[0], first) ||
      !to_number(parts[1], last) || !to_number(step_text, step)) {
    values.push_back(item);
    return;
  }
  const bool whole = is_whole(parts[0]) && is_whole(parts[1]) && is_whole(step_text);
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::fabs(first) > exact || std::fabs(last) > exact)
    fail("range " + item + " leaves the numbers that it can count, 2^53");
  const bool endless = geometric ? !(first > 0.0 && step > 1.0) : step == 0.0;
  if (endless)
    fail("range " + item +
         (geometric ? ": FIRST:LAST:*FACTOR needs FIRST > 0 and FACTOR > 1" : ": the step is 0"));
  const bool down = !geometric && step < 0.0;
  // A last value that rounding puts a hair beyond LAST belongs to the range.
  const double slack = whole ? 0.0 : 1e-9 * std::fabs(geometric ? last : step);
  const size_t before = values.size();
  for (size_t i = 0;; ++i) {
    const double value = geometric ? first * std::pow(step, static_cast<double>(i))
                                   : first + static_cast<double>(i) * step;
    if (down ? value < last - slack : value > last + slack) break;
    if (i == max_points)
      fail("range " + item + " has more than " + std::to_string(max_points) + " values");
    values.push_back(number_text(value, whole));
  }
  if (values.size() == before) fail("range " + item + " is empty");
}

std::vector<std::string> read_keys(Reader& in) {
  std::vector<std::string> keys;
  const bool together = in.take('(');
  do {
    const Word key = in.word("=,()");
    if (key.text.empty()) in.fail("a key is missing");
    keys.push_back(lower(key.text));
  } while (together && in.take(','));
  if (together && !in.take(')')) in.fail("')' is missing after the keys that vary together");
  if (!in.take('=')) in.fail("'=' is missing after " + join(keys, ", "));
  return keys;
}

std::vector<std::string> read_tuple(Reader& in, size_t size) {
  std::vector<std::string> values;
  if (!in.take('('))
    in.fail("keys that vary together take values in parentheses, as in (a, b) = (1, 2), (3, 4)");
  do {
    const Word value = in.word(",()");
    if (value.text.empty() && !value.quoted) in.fail("a value is missing");
    values.push_back(value.text);
  } while (in.take(','));
  if (!in.take(')')) in.fail("')' is missing after " + join(values, ", "));
  if (values.size() != size)
    in.fail("(" + join(values, ", ") + ") has " + std::to_string(values.size()) + " values for " +
            std::to_string(size) + " keys");
  return values;
}

}  // namespace

Dimension parse_vary(const std::string& text, const FailText& fail) {
  Reader in(text, fail);
  Dimension dimension;
  dimension.keys = read_keys(in);
  do {
    if (dimension.keys.size() > 1) {
      dimension.values.push_back(read_tuple(in, dimension.keys.size()));
      continue;
    }
    const Word item = in.word(",");
    if (item.text.empty() && !item.quoted)
      in.fail("a value of " + dimension.keys[0] + " is missing");
    std::vector<std::string> values;
    if (item.quoted) {
      values.push_back(item.text);
    } else {
      add_item(item.text, values, fail);
    }
    for (const std::string& value : values) dimension.values.push_back({value});
  } while (in.take(','));
  if (!in.at_end()) in.fail("expected ',' before '" + in.rest() + "'");
  return dimension;
}

std::vector<std::string> parse_row(const std::string& text, const FailText& fail) {
  Reader in(text, fail);
  std::vector<std::string> fields;
  while (!in.at_end()) {
    const Word field = in.word(",");
    if (field.text.empty() && !field.quoted)
      in.fail("a value is missing before ','; write - to keep the deck's");
    fields.push_back(field.text == "-" && !field.quoted ? unset : field.text);
    in.take(',');
  }
  return fields;
}

std::vector<std::string> parse_command(const std::string& text, const FailText& fail) {
  Reader in(text, fail);
  std::vector<std::string> words;
  while (!in.at_end()) words.push_back(in.word("").text);
  return words;
}

}  // namespace gptbench
