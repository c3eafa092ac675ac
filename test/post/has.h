#pragma once

#include <string>

namespace gptbench {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace gptbench
