// Lines of a text that may be long.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

namespace gptbench {

// Calls use(line) for each line that is not empty, trimmed. A vector of them would take 16 times
// the memory of a text of short lines.
template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (const std::string line = trim(text.substr(0, end)); !line.empty()) use(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace gptbench
