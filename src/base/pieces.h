#pragma once

#include <algorithm>
#include <cstdint>

namespace gptbench {

// Elements of a long array that the host holds at a time.
constexpr int64_t staging_elements = 1 << 20;

// Calls visit(first, n) for pieces of elements [first, end) of at most staging_elements.
template <class Visitor>
void for_each_piece(int64_t first, int64_t end, const Visitor& visit) {
  for (; first < end; first += staging_elements)
    visit(first, std::min(staging_elements, end - first));
}

}  // namespace gptbench
