#pragma once

#include <string>

namespace gptbench {

// Text of a result file in XML or HTML: printable, & < > " ' escaped.
std::string xml(const std::string& text);

}  // namespace gptbench
