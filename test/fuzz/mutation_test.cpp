// The fuzz targets on mutated inputs from a fixed seed: runs everywhere, also without libFuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "deck/presets.h"
#include "post/report.h"
#include "post/style.h"
#include "random_deck.h"
#include "targets.h"

namespace gptbench {
namespace {

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

Dice dice_of(uint64_t number) {
  const uint64_t seed = test_seed() + number;
  std::cout << "seed " << seed << "\n";
  return Dice(seed);
}

TEST(DeckMutation, AnyTextIsRefusedInOneLineOrEchoed) {
  Dice dice = dice_of(4);
  for (int n = 0; n < 3000; ++n) {
    const std::string text =
        dice.one_in(8) ? dice.pick(embedded_presets()).text : random_deck(dice);
    fuzz_deck(text);
    fuzz_deck(damage(dice, text));
    fuzz_deck(with_random_bytes(dice, text));
    fuzz_deck("!!run.name=" + with_random_bytes(dice, "it's a 'name'") + "\n" + text);
  }
}

// Seeds are accepted, or the rest would test little, and are not cut by libFuzzer (-max_len of
// CMakeLists.txt).
TEST(ParserMutation, AnyBytesAreReadOrRefusedInOneLine) {
  Dice dice = dice_of(5);
  for (const FuzzTarget& target : fuzz_targets()) {
    SCOPED_TRACE(target.name);
    const std::vector<std::string> seeds = target.seeds();
    ASSERT_FALSE(seeds.empty());
    for (const std::string& seed : seeds) {
      EXPECT_TRUE(target.run(seed));
      EXPECT_LE(seed.size(), std::string(target.name) == "result" ? 32768u : 8192u);
    }
    const int most = std::string(target.name) == "result" ? 50 : 300;  // a process for each
    for (int n = 0; n < most; ++n) target.run(with_random_bytes(dice, dice.pick(seeds)));
  }
}

// What libFuzzer found in long runs, also with compilers and on machines where it does not run.
TEST(ParserMutation, InputsOfTheCorpusAreReadOrRefusedInOneLine) {
  namespace fs = std::filesystem;
  for (const FuzzTarget& target : fuzz_targets()) {
    if (target.name == std::string("result")) continue;  // begins with its seeds
    int inputs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(GPTBENCH_FUZZ_CORPUS) / target.name)) {
      std::ifstream file(entry.path(), std::ios::binary);
      target.run({std::istreambuf_iterator<char>(file), {}});
      ++inputs;
    }
    EXPECT_GT(inputs, 0) << target.name;
  }
}

// Whatever a result holds, gptpost makes its tables and its page.
TEST(RecordMutation, AnyContentHasTablesAndAPage) {
  Dice dice = dice_of(6);
  int read = 0;
  for (int n = 0; n < 300; ++n) {
    std::string input;
    for (size_t bytes = 4 + dice.below(40); bytes > 0; --bytes)
      input += static_cast<char>(dice.below(256));
    const std::optional<Record> record = edited_record(input);
    if (!record) continue;
    ++read;
    for (const Style& style : styles) format_markdown(style.tables({RunView(*record)}));
    report_page({RunView(*record), RunView(*record)});
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace gptbench
