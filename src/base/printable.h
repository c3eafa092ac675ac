// Text of unknown origin: UTF-8, and what a terminal may print.
#pragma once

#include <string>
#include <string_view>

namespace gptbench {

// `text` without anything that a terminal obeys: control characters (ASCII but for line feed and
// tab, DEL, U+0080 to U+009F) and bytes that are not UTF-8 become "\x1b".
std::string printable(std::string_view text);

// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0: it is no UTF-8.
size_t utf8_length(std::string_view text);

}  // namespace gptbench
