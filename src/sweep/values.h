// The small languages inside the strings of &sweep.
//
//   vary    KEY = ITEM, ITEM, ...             one key
//           (KEY, KEY) = (V, V), (V, V), ...  keys that vary together
//   ITEM    a value as on the command line; quoted ("a, b") where it holds a comma or a parenthesis
//           FIRST:LAST  FIRST:LAST:STEP       arithmetic range, LAST included where it is met
//           FIRST:LAST:*FACTOR                geometric: 1:64:*2 is 1, 2, 4, ..., 64
//   row     values parted by blanks or commas, quoted where they hold either; - keeps the deck's
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace gptbench {

// Throws with what is wrong; the caller knows where the text stands.
using FailText = std::function<void(const std::string&)>;

struct Dimension {
  std::vector<std::string> keys;                 // as written
  std::vector<std::vector<std::string>> values;  // [point][key]; without quotes
};

// At least one key and one value. A range has at most `max_points` values.
constexpr size_t max_points = 100000;
Dimension parse_vary(const std::string& text, const FailText& fail);

// Fields of a row; a field "-" that was not quoted comes back as `unset`.
inline const std::string unset("\n");
std::vector<std::string> parse_row(const std::string& text, const FailText& fail);

// Words of a command: blanks part them, "..." or '...' hold them together; nothing else is special.
std::vector<std::string> parse_command(const std::string& text, const FailText& fail);

}  // namespace gptbench
