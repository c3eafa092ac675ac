// Every row of the published tables is a deck in input/<table>, written by the sweep beside it;
// what can be planned is planned, what contradicts itself is refused. The files *.csv hold the
// inputs of the tables' rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "deck/validate.h"
#include "plan/plan.h"
#include "sweep/sweep.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

using CsvRow = std::map<std::string, std::string>;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<CsvRow> csv_of(const std::string& table) {
  std::istringstream in(text_of(fs::path(GPTBENCH_SOURCE_DIR) / "test/tables" / (table + ".csv")));
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = split(line, ',');
  std::vector<CsvRow> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> values = split(line, ',');
    EXPECT_EQ(values.size(), names.size()) << line;
    CsvRow row;
    for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
    rows.push_back(std::move(row));
  }
  EXPECT_FALSE(rows.empty());
  return rows;
}

int64_t number(const CsvRow& row, const std::string& name) {
  return std::stoll(row.at(name));
}

Sweep sweep_of(const std::string& table) {
  const std::string path = "input/" + table + "/sweep.in";
  return expand_sweep(path, text_of(fs::path(GPTBENCH_SOURCE_DIR) / path), {});
}

// The row of the sweep that says what the row of the table says.
const SweepRow* row_with(const Sweep& sweep,
                         const std::function<bool(const SweepRow&, const Config&)>& is_it) {
  for (const SweepRow& row : sweep.rows)
    if (is_it(row, row.deck.config)) return &row;
  return nullptr;
}

// The decks in input/<table> are what the sweep writes, and there are no others.
void expect_decks_as_written(const std::string& table, const Sweep& sweep) {
  const fs::path folder = fs::path(GPTBENCH_SOURCE_DIR) / "input" / table;
  std::vector<std::string> written = {"sweep.in", "sweep_short.in"}, there;
  for (const SweepRow& row : sweep.rows) {
    if (sweep.is_pruned(row)) continue;
    written.push_back(row.name + ".in");
    EXPECT_EQ(text_of(folder / written.back()), row_deck_text(sweep, row))
        << "write it anew: gptbench --sweep " << sweep.path << " --write-decks input/" << table;
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".in") there.push_back(entry.path().filename());
  std::sort(written.begin(), written.end());
  std::sort(there.begin(), there.end());
  EXPECT_EQ(there, written);
}

// Plan of the row's deck as read from its file.
Plan planned(const Sweep& sweep, const SweepRow& row) {
  EXPECT_EQ(row.refused, "") << row.name;
  const Deck deck = parse_deck(row.name, row_deck_text(sweep, row), {});
  validate(deck);
  return make_plan(resolve(deck, row.ranks), row.ranks, row.ranks - 1);
}

TEST(Tables, Fugaku) {
  const Sweep sweep = sweep_of("fugaku");
  expect_decks_as_written("fugaku", sweep);
  std::vector<std::string> refused;
  for (const CsvRow& csv : csv_of("fugaku")) {
    const double peak = csv.at("freq_ghz") == "2.2" ? 6.7584 : 6.144;
    const SweepRow* row = row_with(sweep, [&](const SweepRow& r, const Config& c) {
      return r.nodes == number(csv, "nodes") && r.ranks == r.nodes &&
             c.output.peak_tflops == peak && c.model.seq_length == number(csv, "seq_length") &&
             (c.memory.activation_checkpointing == Recompute::full) ==
                 (csv.at("activation_checkpointing") == "True") &&
             c.parallel.data_parallel == number(csv, "dp") &&
             c.parallel.tensor_parallel == number(csv, "tp") &&
             c.parallel.pipeline_parallel == number(csv, "pp") &&
             c.batch.micro_batch_size == number(csv, "mbs") &&
             c.batch.global_batch_size == number(csv, "gbs");
    });
    ASSERT_NE(row, nullptr) << csv.at("nodes") << " nodes, dp " << csv.at("dp");
    // Inconsistent: more or fewer ranks than the decomposition has, or more sequences at once than
    // the global batch.
    const bool is_inconsistent =
        number(csv, "dp") * number(csv, "tp") * number(csv, "pp") != number(csv, "nodes") ||
        number(csv, "dp") * number(csv, "mbs") > number(csv, "gbs");
    EXPECT_EQ(!row->refused.empty(), is_inconsistent) << row->name << ": " << row->refused;
    if (is_inconsistent) {
      refused.push_back(row->name);
      continue;
    }
    const Plan plan = planned(sweep, *row);
    // 124M with the vocabulary padded to 50304: V h + s h + l (12 h^2 + 13 h) + 2 h.
    const int64_t h = 768, s = number(csv, "seq_length");
    EXPECT_EQ(plan.num_params, 50304 * h + s * h + 12 * (12 * h * h + 13 * h) + 2 * h);
  }
  EXPECT_EQ(refused.size(), 3u) << join(refused, ", ");
}

TEST(Tables, Zero) {
  const Sweep sweep = sweep_of("zero");
  expect_decks_as_written("zero", sweep);
  for (const CsvRow& csv : csv_of("zero")) {
    const SweepRow* row = row_with(sweep, [&](const SweepRow& r, const Config& c) {
      return c.model.preset == lower(csv.at("model")) && r.ranks == number(csv, "gpus") &&
             c.parallel.data_parallel == number(csv, "dp") &&
             c.parallel.tensor_parallel == number(csv, "mp") &&
             c.parallel.zero_stage == number(csv, "zero_stage") &&
             !c.parallel.offload.empty() == (csv.at("cpu_offload") == "Yes");
    });
    ASSERT_NE(row, nullptr) << csv.at("model") << " ZeRO " << csv.at("zero_stage");
    const ModelConfig& model = row->deck.config.model;
    EXPECT_EQ(model.num_layers, number(csv, "num_layers"));
    EXPECT_EQ(model.hidden_size, number(csv, "hidden_size"));
    EXPECT_EQ(model.num_attention_heads, number(csv, "num_heads"));
    EXPECT_EQ(row->deck.config.run.find_largest, FindLargest::global_batch);
    planned(sweep, *row);
  }
}

TEST(Tables, Mpt) {
  const Sweep sweep = sweep_of("mpt");
  expect_decks_as_written("mpt", sweep);
  int rows_of_fp8 = 0;
  for (const CsvRow& csv : csv_of("mpt")) {
    const bool is_pure = csv.at("mp_mode") == "PURE", is_fp8 = csv.at("precision") == "amp_fp8";
    const bool is_h100 = csv.at("gpu").rfind("h100", 0) == 0;
    const bool is_40gb = csv.at("gpu").find("40gb") != std::string::npos;
    const SweepRow* row = row_with(sweep, [&](const SweepRow& r, const Config& c) {
      return c.model.preset == "mpt-" + csv.at("model") && r.ranks == number(csv, "gpus") &&
             c.model.seq_length == number(csv, "seq_len") &&
             c.batch.micro_batch_size == number(csv, "micro_batch_size") &&
             c.batch.global_batch_size == number(csv, "global_batch_size") &&
             c.output.peak_tflops == (is_fp8    ? 1979.0
                                      : is_h100 ? 989.5
                                                : 312.0) &&
             c.memory.device_memory_gib == (is_40gb ? 40.0 : 80.0) &&
             (c.precision.compute == Precision::fp8) == is_fp8 &&
             c.precision.master_weights != is_pure &&
             (c.memory.activation_checkpointing == Recompute::full) ==
                 (csv.at("activation_checkpointing") == "True");
    });
    ASSERT_NE(row, nullptr) << csv.at("model") << " T " << csv.at("seq_len") << " on "
                            << csv.at("gpus") << " " << csv.at("gpu");
    const Config& c = row->deck.config;
    EXPECT_EQ(c.parallel.zero_stage, csv.at("sharding") == "FULL_SHARD" ? 3 : 0);
    EXPECT_EQ(c.batch.global_batch_size * c.model.seq_length, number(csv, "global_batch_tokens"));
    EXPECT_EQ(c.precision.parameters, is_pure ? Precision::bf16 : Precision::auto_);
    EXPECT_EQ(c.precision.compute, is_fp8 ? Precision::fp8 : Precision::bf16);
    const Plan plan = planned(sweep, *row);
    EXPECT_EQ(plan.num_params, number(csv, "num_params")) << row->name;
    // Of fp8 rows the products of the blocks' linear layers, never attention and head.
    const double fp8_share = plan.fp8_flops / plan.model_flops;
    EXPECT_EQ(fp8_share > 0.0, is_fp8);
    EXPECT_LT(fp8_share, 1.0);
    rows_of_fp8 += is_fp8 ? 1 : 0;
    EXPECT_EQ(row->ranks * c.batch.micro_batch_size * number(csv, "grad_accum"),
              c.batch.global_batch_size);
  }
  EXPECT_EQ(rows_of_fp8, 3);
}

// Models over machines: the cells of the published matrix, empty where the model's ranks are more
// than the machine's.
TEST(Tables, Megatron) {
  const Sweep sweep = sweep_of("megatron");
  expect_decks_as_written("megatron", sweep);
  std::set<std::pair<int64_t, int64_t>> machines;
  std::set<std::pair<std::string, int64_t>> models;  // preset, model parallelism
  std::set<std::pair<int64_t, bool>> sharding;       // ZeRO stage, offload
  for (const SweepRow& row : sweep.rows) {
    const Config& c = row.deck.config;
    const int64_t mp = c.parallel.tensor_parallel;
    EXPECT_EQ(!row.refused.empty(), mp > row.ranks) << row.name << ": " << row.refused;
    if (!row.refused.empty()) continue;
    machines.insert({row.nodes, row.ranks_per_node});
    models.insert({c.model.preset, mp});
    sharding.insert({c.parallel.zero_stage, !c.parallel.offload.empty()});
    const Plan plan = planned(sweep, row);
    // The encoder is GPT's with l (12 h^2 + 13 h) and a norm for the embeddings instead of the last
    // one; beside it two token types, the pooler, the transform of the head with its norm, a bias a
    // token, and two sentences.
    const int64_t h = c.model.hidden_size, s = c.model.seq_length, l = c.model.num_layers;
    EXPECT_EQ(c.model.preset, h == 1024 ? "bert-345m" : "bert-175b");
    const int64_t v = 30592;
    EXPECT_EQ(plan.num_params, v * h + s * h + 2 * h + l * (12 * h * h + 13 * h) + 2 * h +
                                   (h * h + h) + (h * h + h) + 2 * h + v + 2 * h + 2);
  }
  const std::set<std::pair<int64_t, int64_t>> columns = {{1, 1}, {1, 8}, {4, 8}, {8, 8}, {16, 8}};
  EXPECT_EQ(machines, columns);
  for (const int64_t mp : {1, 2, 8}) EXPECT_EQ(models.count({"bert-345m", mp}), 1u) << mp;
  for (const int64_t mp : {1, 8, 16, 32}) EXPECT_EQ(models.count({"bert-175b", mp}), 1u) << mp;
  EXPECT_EQ(sharding.size(), 2u);  // ZeRO 0, and ZeRO 3 with offload
}

// The twins for 2 cores expand, and ask for no more.
TEST(Tables, ShortTwins) {
  for (const char* table : {"fugaku", "zero", "mpt", "megatron"}) {
    const std::string path = std::string("input/") + table + "/sweep_short.in";
    const Sweep sweep = expand_sweep(path, text_of(fs::path(GPTBENCH_SOURCE_DIR) / path), {});
    for (const SweepRow& row : sweep.rows) {
      EXPECT_EQ(row.refused, "");
      EXPECT_LE(row.ranks, 2);
    }
  }
}

}  // namespace
}  // namespace gptbench
