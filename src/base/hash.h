// A hash of a sequence of words, such as the bits of a rank's weights: FNV-1a over 64-bit words
// (draft-eastlake-fnv, with the words in place of octets).
#pragma once

#include <cstdint>

namespace gptbench {

constexpr uint64_t hash_of_nothing = 0xcbf29ce484222325ull;

// The hash of a sequence that ends with `word` and whose words before have the hash `hash`.
constexpr uint64_t hash_with(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x100000001b3ull;
  // Multiplying moves bits upwards only: two highest bits would cancel.
  return hash ^ hash >> 32;
}

}  // namespace gptbench
