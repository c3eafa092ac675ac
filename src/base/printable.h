// Text of unknown origin on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace gptbench {

// `text` without anything that a terminal obeys: control characters (ASCII but for line feed and
// tab, DEL, U+0080 to U+009F) and bytes that are not UTF-8 become "\x1b".
std::string printable(std::string_view text);

}  // namespace gptbench
