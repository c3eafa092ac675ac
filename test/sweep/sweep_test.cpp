// A sweep's rows: which, in which order, with which decks, and what is wrong with a sweep.
#include "sweep/sweep.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "deck/keys.h"
#include "deck/validate.h"
#include "sweep/values.h"

namespace gptbench {
namespace {

// Small enough for every decomposition here; the first lines of each deck.
const char* const base =
    "&run name = 'base' /\n"
    "&model num_layers = 4, hidden_size = 16, num_attention_heads = 4, vocab_size = 32, "
    "seq_length = 8 /\n";

Sweep sweep_of(const std::string& keys, const std::vector<std::string>& overrides = {}) {
  return expand_sweep("s.in", base + ("&sweep\n" + keys + "\n/\n"), overrides);
}

std::string message_of(const std::string& keys, const std::vector<std::string>& overrides = {}) {
  try {
    sweep_of(keys, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "";
}

void expect_message(const std::string& keys, const std::vector<std::string>& parts,
                    const std::vector<std::string>& overrides = {}) {
  const std::string message = message_of(keys, overrides);
  EXPECT_FALSE(message.empty()) << keys << " was taken";
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " not in: " << message;
}

std::vector<std::string> values_of(const std::string& vary) {
  std::vector<std::string> values;
  const auto fail = [](const std::string& message) { throw Error(Exit::usage, message); };
  for (const auto& point : parse_vary(vary, fail).values) values.push_back(point.at(0));
  return values;
}

using Texts = std::vector<std::string>;

TEST(SweepValues, ListsAndRanges) {
  EXPECT_EQ(values_of("k = 1, 2 ,3"), (Texts{"1", "2", "3"}));
  EXPECT_EQ(values_of("k=0:3"), (Texts{"0", "1", "2", "3"}));
  EXPECT_EQ(values_of("k = 1:10:4"), (Texts{"1", "5", "9"}));
  EXPECT_EQ(values_of("k = 3:1:-1"), (Texts{"3", "2", "1"}));
  EXPECT_EQ(values_of("k = 1:64:*4"), (Texts{"1", "4", "16", "64"}));
  EXPECT_EQ(values_of("k = 3:100:*2"), (Texts{"3", "6", "12", "24", "48", "96"}));
  EXPECT_EQ(values_of("k = 1:4:*2, 6, 8:9"), (Texts{"1", "2", "4", "6", "8", "9"}));
  EXPECT_EQ(values_of("k = 1073741824:2147483647:*2"), (Texts{"1073741824"}));
  EXPECT_EQ(values_of("k\t=\t1:2 ,\t4\t"), (Texts{"1", "2", "4"}));
  // Whole ends with a step that is not.
  EXPECT_EQ(values_of("k = 0:2:0.5"), (Texts{"0", "0.5", "1", "1.5", "2"}));
  EXPECT_EQ(values_of("k = 2:4:*1.5"), (Texts{"2", "3"}));
  EXPECT_EQ(values_of("k = 0.5:3"), (Texts{"0.5", "1.5", "2.5"}));
  EXPECT_EQ(values_of("k = 0.1234567:0.2:1"), (Texts{"0.1234567"}));
  EXPECT_EQ(values_of("k = 0.3:0.1:-0.1"), (Texts{"0.3", "0.2", "0.1"}));
  // 1.1^2 is a hair above 1.21.
  EXPECT_EQ(values_of("k = 1e9:1.21e9:*1.1"), (Texts{"1000000000", "1100000000", "1210000000"}));
  // Sums of 0.1 are not exact; the last one belongs to the range all the same.
  EXPECT_EQ(values_of("k = 0.1:0.5:0.1"), (Texts{"0.1", "0.2", "0.3", "0.4", "0.5"}));
  EXPECT_EQ(values_of("k = 1e-4:1e-2:*10"), (Texts{"0.0001", "0.001", "0.01"}));
}

TEST(SweepValues, LongestRange) {
  const Texts values = values_of("k = 1:100000");
  ASSERT_EQ(values.size(), 100000u);
  EXPECT_EQ(values.back(), "100000");
  EXPECT_THROW(values_of("k = 1:100001"), Error);
}

TEST(SweepValues, TextsAndQuotes) {
  EXPECT_EQ(values_of("k = none, \"optimizer, parameters\", 'it''s'"),
            (Texts{"none", "optimizer, parameters", "it's"}));
  EXPECT_EQ(values_of("k = .true., gpt2-124m"), (Texts{".true.", "gpt2-124m"}));
  // Not numbers on both sides: no range.
  EXPECT_EQ(values_of("k = C:tokens.bin"), (Texts{"C:tokens.bin"}));
  EXPECT_EQ(values_of("k = 1:2:3:4"), (Texts{"1:2:3:4"}));
}

TEST(SweepValues, KeysTogether) {
  const auto fail = [](const std::string& message) { throw Error(Exit::usage, message); };
  const Dimension d = parse_vary("(A.b, c) = (1, x), (2, \"y, z\")", fail);
  EXPECT_EQ(d.keys, (Texts{"a.b", "c"}));
  ASSERT_EQ(d.values.size(), 2u);
  EXPECT_EQ(d.values[1], (Texts{"2", "y, z"}));
}

TEST(SweepValues, CommandsHoldQuotedWordsTogether) {
  const auto fail = [](const std::string& message) { throw Error(Exit::usage, message); };
  EXPECT_EQ(parse_command("mpirun -n {ranks} \"a b; c\"", fail),
            (Texts{"mpirun", "-n", "{ranks}", "a b; c"}));
}

TEST(Sweep, CombinesLastFastest) {
  const Sweep sweep =
      sweep_of("vary(1) = 'zero_stage = 0, 1'\nvary(2) = 'model.seq_length = 8, 16, 32'");
  EXPECT_EQ(sweep.columns, (Texts{"zero_stage", "seq_length"}));
  ASSERT_EQ(sweep.rows.size(), 6u);
  EXPECT_EQ(sweep.rows[1].values, (Texts{"0", "16"}));
  EXPECT_EQ(sweep.rows[3].values, (Texts{"1", "8"}));
  EXPECT_EQ(sweep.rows[4].deck.config.parallel.zero_stage, 1);
  EXPECT_EQ(sweep.rows[4].deck.config.model.seq_length, 16);
  EXPECT_EQ(sweep.rows[4].number, 5);
  EXPECT_EQ(sweep.rows[4].name, "base-zero_stage_1-seq_length_16");
  EXPECT_EQ(sweep.rows[4].deck.config.output.directory,
            "output/base/base-zero_stage_1-seq_length_16");
  EXPECT_EQ(sweep.rows[4].refused, "");
}

TEST(Sweep, TableOfRowsBesideVariedKeys) {
  const Sweep sweep = sweep_of(
      "columns = 'nodes tensor_parallel', 'micro_batch_size'\n"
      "rows(1) = '1 1 1'\n"
      "rows(3) = '2, 2, -'\n"
      "vary(1) = 'zero_stage = 0, 3'\n"
      "ranks_per_node = 2");
  ASSERT_EQ(sweep.rows.size(), 4u);
  const SweepRow& row = sweep.rows[3];
  EXPECT_EQ(row.values, (Texts{"2", "2", "-", "3"}));
  EXPECT_EQ(row.nodes, 2);
  EXPECT_EQ(row.ranks, 4);
  EXPECT_EQ(row.deck.config.parallel.tensor_parallel, 2);
  EXPECT_EQ(row.deck.config.batch.micro_batch_size, 1);
  EXPECT_EQ(row.deck.config.parallel.data_parallel, 2);  // so that the deck says its ranks
  // A '-' in quotes is a value, which run.seed refuses; without, the deck's stays.
  EXPECT_EQ(sweep_of("columns = 'seed', rows = '-'").rows.at(0).deck.config.run.seed,
            Config().run.seed);
  expect_message("columns = 'seed', rows = '\"-\"'", {"'-' is not an integer"});
}

TEST(Sweep, RanksFromWhatIsGiven) {
  const auto first = [](const std::string& keys) {
    return sweep_of("vary(1) = 'run.seed = 1'\n" + keys).rows.at(0);
  };
  EXPECT_EQ(first("").ranks, 1);
  EXPECT_EQ(first("ranks = 8").nodes, 1);
  EXPECT_EQ(first("ranks = 8").ranks_per_node, 8);
  EXPECT_EQ(first("ranks = 8, ranks_per_node = 3").nodes, 3);
  EXPECT_EQ(first("nodes = 4, ranks_per_node = 2").ranks, 8);
  EXPECT_EQ(first("ranks = 8, nodes = 4").ranks_per_node, 2);
  EXPECT_EQ(first("ranks = 8, nodes = 3").ranks_per_node, 3);
  EXPECT_NE(first("ranks = 8, nodes = 2, ranks_per_node = 2").refused.find("do not go on"),
            std::string::npos);
  EXPECT_EQ(first("ranks = 3, ranks_per_node = 8").ranks_per_node, 3);
  EXPECT_NE(first("ranks = 2, nodes = 4, ranks_per_node = 1").refused.find("do not go on 4 nodes"),
            std::string::npos);
  const Sweep sweep =
      sweep_of("vary(1) = '(data_parallel, tensor_parallel) = (4, 2)'\nranks_per_node = 4");
  EXPECT_EQ(sweep.rows[0].ranks, 8);
  EXPECT_EQ(sweep.rows[0].nodes, 2);
  EXPECT_EQ(sweep_of("vary(1) = '(context_parallel, tensor_parallel) = (2, 2)'").rows[0].ranks, 4);
}

// Letters that no directory has become one '-', none at the end.
TEST(Sweep, NamesOfRowsAreNamesOfDirectories) {
  const Sweep sweep = sweep_of("vary(1) = 'data.path = \"/tmp/a b: /\", \"..c\", \"//\"'");
  ASSERT_EQ(sweep.rows.size(), 3u);
  EXPECT_EQ(sweep.rows[0].name, "base-path_-tmp-a-b");
  EXPECT_EQ(sweep.rows[1].name, "base-path_..c");
  EXPECT_EQ(sweep.rows[2].name, "base-path_");
}

TEST(Sweep, RowsHaveCheckpointsOfTheirOwn) {
  const std::string vary = "vary(1) = 'zero_stage = 0, 1'";
  const Sweep kept = sweep_of(vary + " / &checkpoint directory = 'kept', every_steps = 1");
  ASSERT_EQ(kept.rows.size(), 2u);
  for (const auto& row : kept.rows)
    EXPECT_EQ(row.deck.config.checkpoint.directory, "kept/" + row.name);
  EXPECT_NE(kept.rows[0].name, kept.rows[1].name);
  EXPECT_EQ(sweep_of(vary).rows[1].deck.config.checkpoint.directory, "");
}

TEST(Sweep, TokenBudget) {
  const Sweep sweep = sweep_of("vary(1) = 'seq_length = 8:64:*2'\nglobal_batch_tokens = 100");
  ASSERT_EQ(sweep.rows.size(), 4u);
  EXPECT_EQ(sweep.rows[0].deck.config.batch.global_batch_size, 12);
  EXPECT_EQ(sweep.rows[3].deck.config.batch.global_batch_size, 1);
  const Sweep varied = sweep_of("vary(1) = 'global_batch_tokens = 4, 8, 64'");
  EXPECT_NE(varied.rows[0].refused.find("hold no sequence"), std::string::npos);
  EXPECT_EQ(varied.rows[1].refused, "");
  EXPECT_EQ(varied.rows[1].deck.config.batch.global_batch_size, 1);
  EXPECT_EQ(varied.rows[2].deck.config.batch.global_batch_size, 8);
  const Sweep both = sweep_of("vary(1) = 'global_batch_size = 4'\nglobal_batch_tokens = 64");
  EXPECT_NE(both.rows[0].refused.find("both given"), std::string::npos);
}

TEST(Sweep, GradientAccumulation) {
  const Sweep sweep = sweep_of(
      "vary(1) = 'gradient_accumulation = 1, 3'\nvary(2) = 'micro_batch_size = 2, 5'\n"
      "ranks = 4, name = 'x-{gradient_accumulation}-{micro_batch_size}'");
  ASSERT_EQ(sweep.rows.size(), 4u);
  EXPECT_EQ(sweep.rows[0].deck.config.batch.global_batch_size, 8);
  EXPECT_EQ(sweep.rows[3].deck.config.batch.global_batch_size, 60);
  EXPECT_EQ(sweep.rows[3].name, "x-3-5");
  const auto refused = [](const std::string& keys) {
    return sweep_of("vary(1) = 'run.seed = 1'\ngradient_accumulation = 2\n" + keys)
        .rows.at(0)
        .refused;
  };
  EXPECT_NE(refused("global_batch_tokens = 64").find("both given"), std::string::npos);
  EXPECT_NE(refused("global_batch_tokens = 1").find("both given"), std::string::npos);
  EXPECT_NE(refused("vary(2) = 'global_batch_size = 4'").find("both given"), std::string::npos);
  EXPECT_NE(refused("vary(2) = 'tensor_parallel = 3', ranks = 4"), "");
}

// The run gets the smaller of its own limit and the sweep's.
TEST(Sweep, TimeLimitsOfRows) {
  const auto limits = [](const std::string& keys) {
    std::vector<double> found;
    for (const SweepRow& row : sweep_of("vary(1) = 'run.time_limit_s = 0, 5, 7'\n" + keys).rows) {
      found.push_back(row.deck.config.run.limits.time_limit_s);
      EXPECT_EQ(parse_deck("row.in", row_deck_text({}, row), {}).config.run.limits.time_limit_s,
                found.back());
    }
    return found;
  };
  EXPECT_EQ(limits(""), (std::vector<double>{0, 5, 7}));
  EXPECT_EQ(limits("time_limit_s = 6"), (std::vector<double>{6, 5, 6}));
}

TEST(Sweep, RefusedRowsSayWhy) {
  const Sweep sweep = sweep_of(
      "vary(1) = 'tensor_parallel = 1, 2, 3'\nvary(2) = 'ranks = 2, 3'\n"
      "vary(3) = 'global_batch_size = 2'");
  ASSERT_EQ(sweep.rows.size(), 6u);
  EXPECT_EQ(sweep.rows[0].refused, "");
  EXPECT_NE(sweep.rows[1].refused.find("global_batch_size = 2"), std::string::npos);  // 3 replicas
  EXPECT_NE(sweep.rows[3].refused.find("3 ranks cannot hold"), std::string::npos);
  EXPECT_NE(sweep.rows[5].refused, "");  // 4 heads over 3 ranks
  EXPECT_TRUE(sweep.is_pruned(sweep.rows[3]));
  const std::string table = sweep_table(sweep, Texts(6));
  EXPECT_NE(table.find("6 rows, 2 to run, 4 left out"), std::string::npos) << table;
  EXPECT_NE(table.find("left out: s.in"), std::string::npos) << table;
  const Sweep kept = sweep_of("vary(1) = 'tensor_parallel = 1, 3'\nprune = 'none'");
  const std::string all = sweep_table(kept, Texts(2));
  EXPECT_NE(all.find("2 rows, 1 to run, 1 refused."), std::string::npos) << all;
  EXPECT_NE(all.find("refused: s.in"), std::string::npos) << all;
  EXPECT_NE(all.find("\n2 rows, 1 refused\n"), std::string::npos) << all;
}

// run.layout = 'auto': a row is refused where no layout suits that the search of its run may
// choose.
TEST(Sweep, SearchedLayoutsNeedNotBeThoseOfTheDeck) {
  const auto refusal = [](const std::string& row, const std::string& layout) {
    const Sweep sweep = sweep_of(row + "\nranks = 8 /\n&parallel context_parallel = 3",
                                 {"run.layout=" + layout, "batch.global_batch_size=8"});
    return sweep.rows.at(0).refused;
  };
  EXPECT_NE(refusal("vary(1) = 'tensor_parallel = 4'", "given"), "");
  EXPECT_EQ(refusal("vary(1) = 'tensor_parallel = 4'", "auto"), "");
  const std::string no_layout = refusal("vary(1) = 'tensor_parallel = 8'", "auto");
  EXPECT_NE(no_layout.find("nor can 8 ranks have one of the "), std::string::npos) << no_layout;
}

TEST(Sweep, TableOfOneRow) {
  EXPECT_EQ(sweep_table(sweep_of("vary(1) = 'seed = 7'\nranks = 2"), Texts(1)),
            "Sweep base: 1 row, 1 to run.\nrow  ranks  nodes  seed\n  1      2      1  7\n"
            "1 rows, 0 left out\n");
}

TEST(Sweep, PresetOfARowStandsBelowTheKeysOfTheDeck) {
  const std::string deck =
      "&run name = 'p' /\n&model preset = 'gpt-2.5b', seq_length = 256 /\n"
      "&sweep vary(1) = 'model.preset = gpt-345m, gpt2-124m' /";
  const Sweep sweep = expand_sweep("s.in", deck, {});
  EXPECT_EQ(sweep.rows[0].deck.config.model.num_layers, 24);
  EXPECT_EQ(sweep.rows[1].deck.config.model.num_layers, 12);
  EXPECT_EQ(sweep.rows[1].deck.config.model.seq_length, 256);
  EXPECT_EQ(sweep.rows[1].name, "p-preset_gpt2-124m");
}

TEST(Sweep, NamesByPattern) {
  const Sweep sweep = sweep_of(
      "vary(1) = 'zero_stage = 0, 1'\nvary(2) = 'ranks = 1, 2'\n"
      "name = 'z{zero_stage} n{ranks}/{model.family}'");
  EXPECT_EQ(sweep.rows[3].name, "z1-n2-gpt");
  EXPECT_EQ(sweep_of("vary(1) = 'seed = 1'\nname = '..{seed}.x'").rows[0].name, "1.x");
  expect_message("vary(1) = 'zero_stage = 0, 1'\nname = 'same'", {"rows 1 and 2", "'same'"});
  expect_message("vary(1) = 'zero_stage = 0'\nname = '{zero'", {"'}' is missing"});
  expect_message("vary(1) = 'zero_stage = 0'\nname = '{zero_stag}'", {"did you mean 'zero_stage'"});
  expect_message("vary(1) = 'zero_stage = 0'\nname = '//'", {"a name of 0 letters"});
  expect_message("vary(1) = 'zero_stage = 0, 0'", {"rows 1 and 2", "the same name"});
}

// run.name has at most 100 letters; "base-" takes 5. All rows of a sweep have the form of name that
// the longest of them needs: with keys, with the short names of keys, without keys, or a number.
TEST(Sweep, LongNames) {
  const auto names_of = [](const std::string& vary) {
    Texts names;
    for (const SweepRow& row : sweep_of(vary).rows) names.push_back(row.name);
    return names;
  };
  const auto with_path = [&](size_t letters) {
    return names_of("vary(1) = '(path, zero_stage) = (" + std::string(letters, 'x') +
                    ", 0), (y, 3)'");
  };
  const auto x = [](size_t letters) { return std::string(letters, 'x'); };
  EXPECT_EQ(with_path(77),
            (Texts{"base-path_" + x(77) + "-zero_stage_0", "base-path_y-zero_stage_3"}));
  EXPECT_EQ(with_path(78), (Texts{"base-path_" + x(78) + "-zero_0", "base-path_y-zero_3"}));
  EXPECT_EQ(with_path(83), (Texts{"base-path_" + x(83) + "-zero_0", "base-path_y-zero_3"}));
  EXPECT_EQ(with_path(84), (Texts{"base-" + x(84) + "-0", "base-y-3"}));
  EXPECT_EQ(with_path(93), (Texts{"base-" + x(93) + "-0", "base-y-3"}));
  EXPECT_EQ(with_path(94), (Texts{"base-1", "base-2"}));
  // Keys that do not vary are not in the names, short or not.
  EXPECT_EQ(names_of("vary(1) = 'path = " + x(90) + ", y', vary(2) = 'micro_batch_size = 2'"),
            (Texts{"base-path_" + x(90), "base-path_y"}));
}

// A short name stands for one key, and is no other key's name.
TEST(Sweep, ShortNamesOfKeys) {
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"activation_checkpointing = none, full", "ckpt_full"},
      {"context_parallel = 1, 2", "cp_2"},
      {"data_parallel = 1, 2", "dp_2"},
      {"global_batch_size = 1, 2", "gbs_2"},
      {"gradient_accumulation = 1, 2", "gas_2"},
      {"micro_batch_size = 1, 2", "mbs_2"},
      {"pipeline_parallel = 1, 2", "pp_2"},
      {"ranks_per_node = 1, 2", "ppn_2"},
      {"seq_length = 1, 2", "seq_2"},
      {"sequence_parallel = T, F", "sp_F"},
      {"tensor_parallel = 1, 2", "tp_2"},
      {"virtual_stages = 1, 2", "vpp_2"},
      {"zero_stage = 1, 2", "zero_2"}};
  std::set<std::string> taken = {"ranks", "nodes"};
  for (const Key& key : key_table()) taken.insert(key.name);
  const std::string path(78, 'x');
  for (const auto& [vary, name] : keys) {
    EXPECT_EQ(sweep_of("vary(1) = 'path = a, " + path + "', vary(2) = '" + vary + "'").rows[3].name,
              "base-path_" + path + "-" + name);
    EXPECT_TRUE(taken.insert(name.substr(0, name.find('_'))).second) << name;
  }
}

// A path with a line end must not end the comment that names it.
TEST(Sweep, DecksOfAPathWithALineEnd) {
  Sweep sweep = sweep_of("vary(1) = 'seed = 1'");
  sweep.path = "a\n&run steps = 77 /.in";
  const Deck again = parse_deck("row.in", row_deck_text(sweep, sweep.rows[0]), {});
  EXPECT_EQ(again.config.run.steps, sweep.rows[0].deck.config.run.steps);
}

TEST(Sweep, DecksSayWhatIsPublished) {
  const auto deck = [](const std::string& comments) {
    const Sweep sweep = expand_sweep("s.in", comments + "&sweep vary(1) = 'seed = 1' /\n", {});
    const std::string text = row_deck_text(sweep, sweep.rows[0]);
    return text.substr(0, text.find('&'));
  };
  const std::string row = "! Row 1 of s.in: 1 rank on 1 node.\n",
                    origins = "! Published: a.\n! b.\n";
  EXPECT_EQ(deck("! Title.\n!\n" + origins + "!\n! More.\n"), row + origins);
  EXPECT_EQ(deck(origins), row + origins);
  EXPECT_EQ(deck("! Title.\n"), row);
}

TEST(Sweep, DecksGiveTheRowsBack) {
  const Sweep sweep = sweep_of(
      "vary(1) = 'offload = none, \"optimizer, parameters\"'\n"
      "vary(2) = 'lr = 0.1:0.3:0.1'\n"
      "vary(3) = 'sequence_parallel = .true., .false.'\n"
      "vary(4) = '(data.source, data.path) = (synthetic, \"\"), (text, \"it''s; $(a) b.txt\")'",
      {"run.steps=7", "model.dropout=0.25"});
  ASSERT_EQ(sweep.rows.size(), 24u);
  for (const SweepRow& row : sweep.rows) {
    const std::string text = row_deck_text(sweep, row);
    const Deck again = parse_deck("row.in", text, {});
    for (const Key& key : key_table())
      EXPECT_EQ(key.get(again.config), key.get(row.deck.config))
          << key.full_name() << " of row " << row.number << ":\n"
          << text;
    EXPECT_EQ(again.config.run.steps, 7);
  }
  EXPECT_EQ(sweep.rows[23].deck.config.data.path, "it's; $(a) b.txt");
}

TEST(Sweep, ListsOfManyColumnsFitTheWidth) {
  const Sweep sweep = sweep_of(
      "vary(1) = 'activation_checkpointing = none, selective'\n"
      "vary(2) = 'pipeline_schedule = gpipe, 1f1b'\nvary(3) = 'context_parallel = 1, 2'\n"
      "vary(4) = 'sequence_parallel = F'\nvary(5) = 'virtual_stages = 1'");
  const std::string table = sweep_table(sweep, Texts(sweep.rows.size()));
  for (size_t at = 0; at < table.size();) {
    const size_t end = table.find('\n', at);
    EXPECT_LE(end - at, 80u) << table.substr(at, end - at);
    at = end + 1;
  }
}

TEST(Sweep, CommandLineOverridesDeckAndSweep) {
  const Sweep sweep = sweep_of("vary(1) = 'zero_stage = 0, 1'\ntime_limit_s = 5",
                               {"run.steps=3", "sweep.time_limit_s=9", "sweep.prune=none"});
  EXPECT_EQ(sweep.config.time_limit_s, 9.0);
  EXPECT_EQ(sweep.config.prune, Prune::none);
  EXPECT_EQ(sweep.rows[1].deck.config.run.steps, 3);
  // An array of the command line replaces the deck's.
  EXPECT_EQ(
      sweep_of("vary(1) = 'zero_stage = 0, 1'\nvary(2) = 'seed = 1, 2'", {"sweep.vary='seed = 3'"})
          .rows.size(),
      1u);
  expect_message("vary(1) = 'zero_stage = 0, 1'",
                 {"command line: parallel.zero_stage=2: ", "parallel.zero_stage varies"},
                 {"parallel.zero_stage=2"});
  expect_message("vary(1) = 'zero_stage = 0, 1'",
                 {"command line: sweep.prume=none: ", "did you mean 'prune'"},
                 {"sweep.prume=none"});
}

TEST(Sweep, WhatIsWrongIsNamedWithItsPlace) {
  expect_message("", {"s.in:3:1", "nothing varies"});
  expect_message("very(1) = 'zero_stage = 0'", {"s.in:4:1", "did you mean 'vary'"});
  expect_message("vary(1) = 'zero_stag = 0'", {"s.in:4:11", "did you mean 'zero_stage'"});
  expect_message("vary(1) = 'zero_stage = 5'", {"s.in:4:11", "0 to 3"});
  expect_message("vary(1) = 'zero_stage = a'", {"s.in:4:11", "not an integer"});
  expect_message("vary(1) = 'zero_stage = 1'\nvary(2) = 'parallel.zero_stage = 2'",
                 {"s.in:5:11", "varies twice"});
  expect_message("vary(1) = 'zero_stage = 1 2'", {"expected ','"});
  expect_message("vary(1) = 'zero_stage = 1,'", {"a value of zero_stage is missing"});
  expect_message("vary(1) = 'zero_stage'", {"'=' is missing"});
  expect_message("vary(1) = '(zero_stage, seed) = (1, 2, 3)'", {"3 values for 2 keys"});
  expect_message("vary(1) = '(zero_stage, seed) = 1, 2'", {"in parentheses"});
  expect_message("vary(1) = 'name = a, b'", {"sweep itself"});
  expect_message("vary(1) = 'seed = 1'\nvary(1) = 'run.steps = 4'",
                 {"s.in:5:1", "sweep.vary is given twice, first at s.in:4:1"});
  expect_message("ranks = 2\nranks = 3", {"s.in:5:1", "sweep.ranks is given twice"});
  expect_message("vary(1) = 'run.seed = 1:4:0'", {"step is 0"});
  expect_message("vary(1) = 'run.seed = 2:4:*1'", {"FACTOR > 1"});
  expect_message("vary(1) = 'run.seed = 1:9007199254740994'", {"2^53"});
  expect_message("vary(1) = 'run.seed = -9007199254740994:1'", {"2^53"});
  expect_message("vary(1) = 'run.seed = 0:4:*2'", {"FIRST > 0"});
  expect_message("vary(1) = 'run.seed = 4:1'", {"is empty"});
  expect_message("vary(1) = 'run.seed = 1:1000000'", {"more than 100000"});
  expect_message("vary(1) = 'run.seed = 1:1000'\nvary(2) = 'run.steps = 3:1000'", {"100,000 rows"});
  expect_message("vary(1) = 'run.seed = \"1'", {"not closed"});
  expect_message("vary(1) = 'ranks = 0'", {"from 1"});
  expect_message("columns = 'seed'", {"without sweep.rows"});
  expect_message("rows = '1'", {"s.in:4:8", "needs sweep.columns"});
  expect_message("columns = 'zero_stage', '-' rows = '1 1'", {"s.in:4:", "columns: '-' is no key"});
  expect_message("columns = 'seed', rows = '1', '1 2'", {"s.in:4:31", "2 values for 1 columns"});
  expect_message("prune = 'some', vary(1) = 'seed = 1'", {"'none', 'refused', 'memory'"});
  expect_message("rerun = 'lost', vary(1) = 'seed = 1'", {"'failed'"});
}

TEST(Sweep, OtherwiseDecksWithAndWithoutASweepAreKeptApart) {
  const std::string with = base + std::string("&sweep vary(1) = 'seed = 1' /");
  try {
    parse_deck("s.in", with, {});
    FAIL() << "a run took a sweep";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gptbench --sweep DECK"), std::string::npos);
  }
  try {
    expand_sweep("s.in", base, {});
    FAIL() << "a sweep took a plain deck";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no group &sweep"), std::string::npos);
  }
}

}  // namespace
}  // namespace gptbench
