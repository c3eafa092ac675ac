#include "base/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace gptbench {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0: it is a control character or no UTF-8.
size_t printable_length(std::string_view text) {
  const unsigned char first = static_cast<unsigned char>(text.front());
  if (first < 0x80)
    return (first >= 0x20 && first != 0x7f) || first == '\n' || first == '\t' ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const unsigned char next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0u) != 0x80u) return 0;
    code = code << 6 | (next & 0x3fu);
  }
  const uint32_t least[] = {0xa0, 0x800, 0x10000};  // below: U+0080 to U+009F, or an overlong form
  return code >= least[length - 2] ? length : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = printable_length(text);
    if (length > 0) {
      result += text.substr(0, length);
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text.front()));
      result += escaped;
    }
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return result;
}

}  // namespace gptbench
