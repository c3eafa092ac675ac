#include "post/xml.h"

#include "base/printable.h"

namespace gptbench {

std::string xml(const std::string& raw) {
  std::string text;
  for (const char c : printable(raw)) {
    switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      case '\'':
        text += "&#39;";
        break;
      default:
        text += c;
    }
  }
  return text;
}

}  // namespace gptbench
