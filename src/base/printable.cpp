#include "base/printable.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace gptbench {
namespace {

// As utf8_length(), and 0 for a control character.
size_t printable_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = utf8_length(text);
  const bool is_control =
      length == 1 ? (byte(0) < 0x20 && byte(0) != '\n' && byte(0) != '\t') || byte(0) == 0x7f
                  : length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return is_control ? 0 : length;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const unsigned char first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const unsigned char next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0u) != 0x80u) return 0;
    code = code << 6 | (next & 0x3fu);
  }
  const uint32_t least[] = {0x80, 0x800, 0x10000};  // below: an overlong form
  return code >= least[length - 2] ? length : 0;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = printable_length(text);
    if (length > 0)
      result += text.substr(0, length);
    else
      result += printed("\\x%02x", static_cast<unsigned char>(text.front()));
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return result;
}

}  // namespace gptbench
