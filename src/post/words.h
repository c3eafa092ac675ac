// What the completion of shells offers for gptpost.
#pragma once

#include <string>

namespace gptbench {

// A line per command, its name; per option of a command, both and the values that are known, names
// of figures among them; and per deck key as `gptbench --keys --words` has it. No value has a
// blank.
std::string completion_words();

}  // namespace gptbench
