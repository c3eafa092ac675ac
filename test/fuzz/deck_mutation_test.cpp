// The fuzz target on mutated decks from a fixed seed: runs everywhere, also without libFuzzer.
#include <gtest/gtest.h>

#include <iostream>

#include "deck/presets.h"
#include "random_deck.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace gptbench {
namespace {

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::string with_random_bytes(Dice& dice, std::string text) {
  for (size_t n = 1 + dice.below(4); n > 0 && !text.empty(); --n) {
    const size_t at = dice.below(text.size());
    switch (dice.below(4)) {
      case 0:
        text[at] = static_cast<char>(dice.below(256));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, text.substr(dice.below(text.size()), dice.below(40)));
        break;
      default:
        text.erase(at, dice.below(40));
    }
  }
  return text;
}

TEST(DeckMutation, AnyTextIsRefusedInOneLineOrEchoed) {
  const uint64_t seed = test_seed() + 4;
  std::cout << "seed " << seed << "\n";
  Dice dice(seed);
  for (int n = 0; n < 3000; ++n) {
    const std::string text =
        dice.one_in(8) ? dice.pick(embedded_presets()).text : random_deck(dice);
    run(text);
    run(damage(dice, text));
    run(with_random_bytes(dice, text));
    run("!!run.name=" + with_random_bytes(dice, "it's a 'name'") + "\n" + text);
  }
}

}  // namespace
}  // namespace gptbench
