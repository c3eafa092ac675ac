// The parsers of what comes from elsewhere, each on any bytes: they read them, or refuse them with
// one line. Run by libFuzzer (parser_fuzzer.cpp) and on mutated inputs (mutation_test.cpp).
#pragma once

#include <string>
#include <vector>

namespace gptbench {

struct FuzzTarget {
  const char* name;
  // Whether the input was read. Aborts where something does not hold that must. Files are written
  // in the working directory.
  bool (*run)(const std::string& input);
  std::vector<std::string> (*seeds)();  // valid inputs
};

const std::vector<FuzzTarget>& fuzz_targets();

// deck_target.cpp: the text of a deck, which may begin with an override, "!!group.key=value".
bool fuzz_deck(const std::string& text);

// tuning_target.cpp
bool fuzz_tuning(const std::string& text);
std::vector<std::string> tuning_seeds();
bool fuzz_ceilings(const std::string& text);
std::vector<std::string> ceiling_seeds();

// sweep_target.cpp
bool fuzz_sweep(const std::string& text);
std::vector<std::string> sweep_seeds();

// Aborts with a message.
void require(bool holds, const std::string& what, const std::string& input);

}  // namespace gptbench
