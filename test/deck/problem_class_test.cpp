// Problem classes: their keys under a deck's, and what of a deck differs from its class.
#include "deck/problem_class.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "deck/deck.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

using Texts = std::vector<std::string>;

Config resolved(const std::string& text, int64_t ranks, const Texts& overrides = {}) {
  const Deck deck = parse_deck("a.in", text, overrides);
  validate(deck);
  return resolve(deck, ranks);
}

Texts deviations(const std::string& text, int64_t ranks = 2, const Texts& overrides = {}) {
  return class_deviations(resolved(text, ranks, overrides), ranks);
}

TEST(ProblemClass, EveryClassIsADeckThatKeepsItsRules) {
  ASSERT_GE(problem_classes().size(), 4u);
  for (const ProblemClass& each : problem_classes()) {
    const std::string text = "&run class='" + each.name + "' /";
    EXPECT_EQ(deviations(text, 16), Texts{}) << each.name;
    EXPECT_FALSE(each.purpose.empty()) << each.name;
    const Config config = resolved(text, 16);
    // A run ends with the step that is expected to reach its duration.
    EXPECT_GE(config.run.limits.duration_s, 1.05 * each.min_duration_s) << each.name;
    const bool fixed_batch = parse_deck("a.in", text, {}).config.batch.global_batch_size > 0;
    EXPECT_NE(fixed_batch, each.tokens_per_device > 0.0) << each.name;
  }
}

TEST(ProblemClass, KeysOfTheClassLieUnderAllOthers) {
  const std::string text = "&run class='gpt_124m_strong' / &model num_layers=6 /";
  const Deck deck = parse_deck("a.in", text, {"model.hidden_size=96"});
  EXPECT_EQ(deck.config.model.num_layers, 6);
  EXPECT_EQ(deck.config.model.hidden_size, 96);
  EXPECT_EQ(deck.config.model.vocab_multiple, 128);  // of the class's preset
  EXPECT_EQ(deck.config.batch.global_batch_size, 512);
  EXPECT_EQ(deck.origin("batch", "global_batch_size").kind, Origin::Kind::problem_class);
  EXPECT_EQ(deck.origin("batch", "global_batch_size").where, "class gpt_124m_strong");
  EXPECT_NE(echo(deck).find("global_batch_size = 512" + std::string(37, ' ') + "! class\n"),
            std::string::npos)
      << echo(deck);
  // A class of the command line, and a preset of the deck over that of the class.
  EXPECT_EQ(parse_deck("a.in", "&run /", {"run.class=llama_8b_weak"}).config.model.hidden_size,
            4096);
  const Deck other = parse_deck("a.in", text + " &batch /", {"run.class=''"});
  EXPECT_EQ(other.config.batch.global_batch_size, 0);
  const std::string own = "&run class='gpt_124m_weak' / &model preset='gpt2-355m' /";
  EXPECT_EQ(parse_deck("a.in", own, {}).config.model.hidden_size, 1024);
}

// demo has 256 tokens per device in sequences of 64; llama_8b_long one sequence for 8 devices.
TEST(ProblemClass, OfWeakScalingTheBatchGrowsWithTheRanks) {
  EXPECT_EQ(resolved("&run class='demo' /", 1).batch.global_batch_size, 4);
  EXPECT_EQ(resolved("&run class='demo' /", 6).batch.global_batch_size, 24);
  const auto long_sequences = [](int64_t ranks) {
    return resolved("&run class='llama_8b_long' / &parallel context_parallel=" +
                        std::to_string(ranks) + " /",
                    ranks)
        .batch.global_batch_size;
  };
  EXPECT_EQ(long_sequences(4), 1);  // half of it, at least one
  EXPECT_EQ(long_sequences(8), 1);
  EXPECT_EQ(long_sequences(16), 2);
  EXPECT_THROW(resolved("&run class='demo' / &batch micro_batch_size=5 /", 2), Error);
}

TEST(ProblemClass, WhatDiffersFromTheClass) {
  EXPECT_EQ(deviations("&run class='demo' / &model num_layers=3 /"),
            Texts{"model.num_layers = 3 (the class has 2)"});
  EXPECT_EQ(deviations("&run class='demo' / &batch global_batch_size=9 /"),
            Texts{"batch.global_batch_size = 9 (the class has 8)"});
  EXPECT_EQ(deviations("&run class='demo', verify=F, seed=2 / &data source='text', path='x' /"),
            (Texts{"run.seed = 2 (the class has 1)", "run.verify = .false. (the class has .true.)",
                   "data.source = 'text' (the class has 'synthetic')",
                   "data.path = 'x' (the class has '')"}));
  // Layout, device, memory and output are the machine's.
  EXPECT_EQ(deviations("&run class='demo', name='x', steps=9, duration_s=0, device='ref' / "
                       "&parallel tensor_parallel=2, zero_stage=1 / &batch micro_batch_size=2 / "
                       "&memory activation_checkpointing='full' / &output peak_tflops=1 /"),
            Texts{});
  // The values of the model count, not the name that they were given by.
  EXPECT_EQ(deviations("&run class='gpt_124m_weak' / &model preset='gpt2-355m', num_layers=12, "
                       "hidden_size=768, num_attention_heads=12 /"),
            Texts{});
  EXPECT_EQ(deviations("&run name='none' / &model num_layers=1 /"), Texts{});
}

TEST(ProblemClass, TunedMayChangeThePrecisionToo) {
  const std::string bf16 = " / &precision compute='bf16' /";
  EXPECT_EQ(deviations("&run class='demo'" + bf16),
            (Texts{"precision.compute = 'bf16' (the class has 'fp32')",
                   "precision.parameters = 'bf16' (the class has 'fp32')"}));
  EXPECT_EQ(deviations("&run class='demo', tier='tuned'" + bf16), Texts{});
  EXPECT_EQ(deviations("&run class='demo', tier='tuned' / &model num_layers=1 /").size(), 1u);
}

TEST(ProblemClass, MistakesOfATableAreNamed) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_run_rules("c.in", text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("&a deck='run.steps=3', min_steps=2, min_duration_s=1 /"), "accepted");
  EXPECT_EQ(message("&a decks='run.steps=3' /"),
            "c.in:1:4: unknown key 'decks' of a problem class; did you mean 'deck'?");
  for (const char* const two :
       {"deck='run.steps=3'", "deck='run.steps=3', min_steps=2",
        "deck='run.steps=3', min_duration_s=1", "min_steps=2, min_duration_s=1"})
    EXPECT_EQ(message("&a " + std::string(two) + " /"),
              "c.in:1:1: &a needs deck, min_duration_s and min_steps");
  EXPECT_NE(message("&a min_steps=-2 /").find("c.in:1:14: a.min_steps = -2.0 is not allowed"),
            std::string::npos)
      << message("&a min_steps=-2 /");
  EXPECT_NE(message("&tiers as_was='x' /").find("did you mean 'as_is'?"), std::string::npos);
}

// The table of doc/run_rules.md.
TEST(ProblemClass, StandsInTheDocumentation) {
  std::ifstream file(GPTBENCH_SOURCE_DIR "/doc/run_rules.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const ProblemClass& each : problem_classes()) {
    std::ostringstream row;
    row << "| `" << each.name << "` | " << each.purpose << " | "
        << (each.tokens_per_device > 0.0 ? "weak" : "strong") << " | " << each.min_duration_s
        << " | " << each.min_steps << " |";
    EXPECT_NE(page.str().find(row.str()), std::string::npos) << row.str();
  }
}

}  // namespace
}  // namespace gptbench
