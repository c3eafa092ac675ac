// How much run.layout = 'auto' searches, and what it says of it.
#include "run/auto_layout.h"

#include <gtest/gtest.h>

#include "project/search.h"

namespace gptbench {
namespace {

Deck deck_of(const std::vector<std::string>& overrides) {
  return parse_deck("deck",
                    "&run layout = 'auto' /\n&model num_layers = 2 hidden_size = 64 "
                    "num_attention_heads = 2 seq_length = 32 vocab_size = 100 /\n"
                    "&batch global_batch_size = 4 /\n&precision compute = 'bf16' /\n",
                    overrides);
}

TEST(AutoLayout, SaysWhereNotAllLayoutsWereSearched) {
  const Machine machine = read_machine("a100-80");
  const Software software = read_software("gptbench");
  const ChosenLayout all = with_best_layout(deck_of({}), 4, machine, software, all_layouts),
                     some = with_best_layout(deck_of({}), 4, machine, software, 1);
  EXPECT_EQ(all.cut, "");
  EXPECT_EQ(all.text.find("cut after"), std::string::npos) << all.text;
  EXPECT_EQ(some.cut.rfind("cut after ", 0), 0u) << some.cut;
  EXPECT_NE(some.text.find("; " + some.cut), std::string::npos) << some.text;
  EXPECT_FALSE(some.settings.empty());
}

}  // namespace
}  // namespace gptbench
