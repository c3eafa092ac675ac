// Random decks: valid ones that use the whole grammar, and ones damaged by a few random edits.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gptbench {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // Whether decks made with these dice may separate values by ';'.
  bool with_semicolons = true;
  // 0 .. n - 1.
  size_t below(size_t n) { return static_cast<size_t>(engine_() % n); }
  bool one_in(size_t n) { return below(n) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// GPTBENCH_TEST_SEED where it is set, else one fixed seed; printed by the tests that use it.
uint64_t test_seed();

// A valid group &probe, whose variables stand in test/deck/oracle.f90.
std::string random_probe(Dice& dice);
// A valid deck: some groups, some of their keys, values that the key table allows. No preset.
std::string random_deck(Dice& dice);
// `text` after one to three random insertions, deletions or replacements of characters that mean
// something to the grammar.
std::string damage(Dice& dice, std::string text);

}  // namespace gptbench
