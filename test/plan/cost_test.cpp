#include "plan/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "configs.h"
#include "plan/describe.h"

namespace gptbench {
namespace {

Config gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t seq, int64_t vocab) {
  SmallModel m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.seq = seq;
  m.vocab = vocab;
  m.vocab_multiple = 1;
  return resolved_config(m);
}

// Published times of GPT-2 124M on A64FX nodes and the TFLOPs a process that belong to them.
TEST(Cost, MegatronReproducesPublishedFugakuRows) {
  const ModelShape s = model_shape(gpt(12, 768, 12, 1024, 50304).model);
  const double flops = flops_megatron(s, 1024, false);
  const double recomputed = flops_megatron(s, 1024, true);
  // Both to the four digits given.
  EXPECT_NEAR(flops / 1489.7 / 1e12, 0.5608, 0.00005);
  EXPECT_NEAR(recomputed / 2157.3 / 1e12, 0.5163, 0.00005);

  // Rows of the tables: printed with two digits, and the time with one.
  struct Row {
    bool checkpointing;
    int64_t nodes;
    double sec_per_it, tflops;
  };
  constexpr Row rows[] = {{false, 1, 1489.7, 0.56}, {false, 1, 1261.2, 0.66},
                          {false, 512, 4.2, 0.38},  {false, 512, 3.2, 0.50},
                          {true, 1, 1804.3, 0.62},  {true, 1, 1552.4, 0.72},
                          {true, 1, 1649.9, 0.68},  {true, 256, 7.3, 0.59}};
  for (const Row& row : rows) {
    const double tflops = (row.checkpointing ? recomputed : flops) /
                          (static_cast<double>(row.nodes) * row.sec_per_it) / 1e12;
    const double of_time = 0.05 / row.sec_per_it;  // half a digit of the printed time, relative
    EXPECT_NEAR(tflops, row.tflops, 0.005 + of_time * tflops) << row.nodes << " nodes";
  }
}

// Published MPT rows: model_tflop (1e14 FLOP/s a GPU) = tokens/s (6 N + 12 l h s) / GPUs.
TEST(Cost, MptReproducesPublishedRows) {
  struct Row {
    const char* model;
    int64_t layers, hidden, heads, seq, gpus, tokens_per_s;
    double model_tflop;
    int64_t num_params;
    double mfu_pct, hfu_pct, peak;
    bool checkpointing;
  };
  constexpr double h100 = 989.5e12, a100 = 312e12;
  constexpr Row rows[] = {
      {"30b", 48, 7168, 56, 2048, 32, 73860, 4.346371, 29975214080, 43.92, 58.57, h100, true},
      {"7b", 32, 4096, 32, 1024, 8, 81628, 4.238424, 6654664704, 42.83, 57.11, h100, true},
      {"1b", 24, 2048, 16, 2048, 64, 2841754, 4.042246, 1315950592, 40.85, 40.85, h100, false},
      {"760m", 24, 1536, 12, 1024, 8, 628648, 3.934058, 758897664, 39.76, 39.76, h100, false},
      {"30b", 48, 7168, 56, 1024, 8, 7571, 1.741706, 29967874048, 55.82, 74.43, a100, true},
      {"7b", 32, 4096, 32, 2048, 8, 37130, 2.003836, 6658859008, 64.23, 64.23, a100, false},
      {"760m", 24, 1536, 12, 65536, 8, 33150, 1.414636, 857988096, 45.34, 60.45, a100, true},
      {"125m", 12, 768, 12, 32768, 8, 291256, 1.644619, 148904448, 52.71, 52.71, a100, false},
      {"13b", 40, 5120, 40, 4096, 8, 12830, 1.399320, 12864440320, 44.85, 59.80, a100, true},
      {"1b", 24, 2048, 16, 8192, 8, 107799, 1.725048, 1328533504, 55.29, 55.29, a100, false},
      {"125m", 12, 768, 12, 2048, 64, 8015010, 1.225224, 125311488, 39.27, 39.27, a100, false},
  };
  for (const Row& row : rows) {
    Config config = gpt(row.layers, row.hidden, row.heads, row.seq, 50368);
    const ModelShape s = model_shape(config.model);
    const int64_t num_params = count_params(tensor_table(config.model));
    EXPECT_EQ(num_params, row.num_params) << row.model;
    const double flops_per_token = flops_mpt(s, num_params, 1) / static_cast<double>(row.seq);
    const double rate =
        static_cast<double>(row.tokens_per_s) * flops_per_token / static_cast<double>(row.gpus);
    // The two columns are means of their own: in the published rows they agree to 1.1e-4, rows
    // with few tokens a second to one token.
    const double digits = std::max(1.1e-4, 1.0 / static_cast<double>(row.tokens_per_s));
    EXPECT_NEAR(rate / 1e14, row.model_tflop, digits * row.model_tflop + 1e-6) << row.model;

    config.memory.activation_checkpointing = row.checkpointing ? Recompute::full : Recompute::none;
    const double mfu_pct = 100.0 * rate / row.peak;
    const double of_rate = digits * mfu_pct;
    EXPECT_NEAR(mfu_pct, row.mfu_pct, 0.0051 + of_rate) << row.model;
    EXPECT_NEAR(mfu_pct * hardware_factor(config.memory), row.hfu_pct, 0.0051 + 4.0 / 3.0 * of_rate)
        << row.model;
  }
}

// Selective recomputation has no GEMM that counts.
TEST(Cost, FullRecomputationAloneAddsAForwardPass) {
  MemoryConfig memory;
  EXPECT_DOUBLE_EQ(hardware_factor(memory), 1.0);
  memory.activation_checkpointing = Recompute::selective;
  EXPECT_DOUBLE_EQ(hardware_factor(memory), 1.0);
  memory.activation_checkpointing = Recompute::full;
  EXPECT_DOUBLE_EQ(hardware_factor(memory), 4.0 / 3.0);
}

// Counting half of the attention matrix leaves 6 L C B T^2 less than counting all of it, and the
// matrix products are the same.
TEST(Cost, ExactIsCausalAndTheOtherHalfOfAttention) {
  for (const int64_t global_batch : {5, 7}) {
    SmallModel m;
    m.layers = 3;
    m.hidden = 12;
    m.seq = 6;
    m.vocab = 21;
    m.global_batch = global_batch;
    const Plan plan = make_plan(resolved_config(m), 1, 0);
    const std::map<std::string, double> flops = flops_by_convention(plan, stage_figures(plan));
    const double half = 6.0 * 3 * 12 * static_cast<double>(global_batch) * 6 * 6;
    // Sums of integers below 2^53.
    EXPECT_EQ(flops.at("exact"), flops.at("causal") + half);
    EXPECT_EQ(flops.at("exact_recomputed"), 0.0);
    // Without attention.
    EXPECT_EQ(flops.at("mpt"), flops.at("mpt_star") + 2.0 * half);
    // With biases and LayerNorm in N: 6 N exceeds the matrix products by those parameters.
    const double vectors = 3 * 13 * 12 + 2 * 12 + 6 * 12;  // biases, LayerNorm, positions
    EXPECT_EQ(flops.at("mpt"),
              flops.at("exact") + 6.0 * vectors * static_cast<double>(global_batch * 6));
  }
}

// Megatron's is the same count as exact's, but that it leaves out nothing and adds nothing:
// 72 B T L C^2 + 12 B T^2 L C + 4.5 B T V C; exact's head is 6 B T V C.
TEST(Cost, MegatronAgainstExact) {
  SmallModel m;
  m.layers = 2;
  m.hidden = 16;
  m.seq = 8;
  m.vocab = 32;
  m.global_batch = 4;
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const std::map<std::string, double> flops = flops_by_convention(plan, stage_figures(plan));
  const double head = 1.5 * 4 * 8 * 32 * 16;
  // A few roundings of double.
  EXPECT_NEAR(flops.at("megatron") + head, flops.at("exact"), 1e-14 * flops.at("exact"));
}

// One layer of 12 C^2 = 48 elements, C = 2, V = 8, one sequence of T = 2:
// T (6 * 48 + 6 C V) = 768, and of attention 6 C T^2 = 48 where it is causal, twice that elsewhere.
TEST(Cost, CausalCountsAllOfAttentionWhereItIsNotCausal) {
  Config config = gpt(1, 2, 1, 2, 8);
  EXPECT_EQ(flops_causal(model_shape(config.model), 1, 1.0), 816.0);
  config.model.family = ModelFamily::bert;
  EXPECT_EQ(flops_causal(model_shape(config.model), 1, 1.0), 864.0);
}

// A quarter of the keys are padding: of attention's 96 FLOPs 72 are done.
TEST(Cost, CausalLeavesOutKeysThatArePadding) {
  Config config = gpt(1, 2, 1, 2, 8);
  config.model.family = ModelFamily::bert;
  EXPECT_EQ(flops_causal(model_shape(config.model), 1, 0.75), 840.0);
  SmallModel m;
  m.family = "bert";
  m.seq = 16;
  const auto flops_of = [&](double short_seq_prob) {
    m.short_seq_prob = short_seq_prob;
    const Plan plan = make_plan(resolved_config(m), 1, 0);
    return flops_by_convention(plan, stage_figures(plan));
  };
  const std::map<std::string, double> whole = flops_of(0.0), padded = flops_of(1.0);
  // Lengths are 5 to 16, in the mean 10.5 of 16.
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const int64_t B = plan.config.batch.global_batch_size;
  const auto attention = static_cast<double>(12 * plan.shape.L * plan.shape.C * B * 16 * 16);
  EXPECT_NEAR(whole.at("causal") - padded.at("causal"), attention * 5.5 / 16.0, 1e-9 * attention);
  EXPECT_EQ(whole.at("megatron"), padded.at("megatron"));
  EXPECT_EQ(whole.at("exact"), padded.at("exact"));
}

// Value of a printed formula: numbers, symbols, sums in brackets; products have no sign.
class Formula {
 public:
  Formula(const std::string& text, const std::map<std::string, double>& symbols)
      : words_(text), symbols_(symbols) {}

  double sum() {
    double value = product();
    while (peek() == '+') {
      words_.get();
      value += product();
    }
    return value;
  }

 private:
  int peek() { return (words_ >> std::ws).peek(); }
  double product() {
    double value = 1.0;
    for (int c = peek(); c != '+' && c != ')' && c != EOF; c = peek()) value *= factor(c);
    return value;
  }
  double factor(int c) {
    double value = 0.0;
    if (c == '(') {
      words_.get();
      value = sum();
      EXPECT_EQ(words_.get(), ')');
    } else if (std::isdigit(c) != 0) {
      words_ >> value;
    } else {
      value = symbols_.at(std::string(1, static_cast<char>(words_.get())));
    }
    return value;
  }

  std::istringstream words_;
  const std::map<std::string, double>& symbols_;
};

// With the values of symbols that stand below the formulas, and in the printed seven digits.
TEST(Cost, PrintedFormulasYieldThePrintedNumbers) {
  for (const char* const family : {"gpt", "llama", "mpt", "bert", "padded bert"})
    for (const char* const recompute : {"none", "full"}) {
      SmallModel m;
      const bool is_padded = family == std::string("padded bert");
      m.family = is_padded ? "bert" : family;
      if (is_padded) {
        m.seq = 16;
        m.short_seq_prob = 0.123;
      }
      m.recompute = recompute;
      m.hidden = 16;
      m.heads = 4;
      m.ffn = 40;
      if (std::string(family) == "llama") m.kv_heads = 2;
      const Plan plan = make_plan(resolved_config(m), 1, 0);
      std::string text = describe(plan, stage_figures(plan));
      text = text.substr(text.find("FLOPs per step"));
      std::map<std::string, double> symbols;
      const std::regex symbol("([A-Za-z])=([0-9.]+)");
      for (std::sregex_iterator at(text.begin(), text.end(), symbol), end; at != end; ++at)
        symbols[(*at)[1]] = std::stod((*at)[2]);
      int formulas = 0;
      const std::regex row("  (\\w+) +([0-9.e+]+) +[0-9.]+ \\w+  (.*[A-Z] .*\\(.*\\))\n");
      for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end;
           ++at, ++formulas) {
        const double value = Formula((*at)[3], symbols).sum();
        EXPECT_NEAR(value, std::stod((*at)[2]), 1e-6 * value)
            << family << ", " << (*at)[1] << ": " << (*at)[3] << "\n"
            << text;
      }
      EXPECT_EQ(formulas, 3) << text;
    }
}

}  // namespace
}  // namespace gptbench
