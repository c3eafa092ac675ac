// Every row of the published tables is a deck in input/<table>, written by the sweep beside it;
// what can be planned is planned, what contradicts itself is refused. The files *.csv beside this
// one hold the inputs of all rows, those of test/reference the published outcomes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "plan/device_traits.h"
#include "plan/plan.h"
#include "reserve.h"
#include "run/largest_batch.h"
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

// Empty fields included; a quoted field may hold commas.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"')
      is_quoted = !is_quoted;
    else if (c == ',' && !is_quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

std::vector<CsvRow> csv_at(const std::string& path) {
  std::istringstream in(text_of(fs::path(GPTBENCH_SOURCE_DIR) / path));
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = fields_of(line);
  std::vector<CsvRow> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> values = fields_of(line);
    EXPECT_EQ(values.size(), names.size()) << line;
    CsvRow row;
    for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
    rows.push_back(std::move(row));
  }
  EXPECT_FALSE(rows.empty());
  return rows;
}

std::vector<CsvRow> csv_of(const std::string& table) {
  return csv_at("test/tables/" + table + ".csv");
}

int64_t number(const CsvRow& row, const std::string& name) {
  return std::stoll(row.at(name));
}

Sweep sweep_of(const std::string& table, const std::string& file = "sweep.in") {
  const std::string path = "input/" + table + "/" + file;
  return expand_sweep(path, text_of(fs::path(GPTBENCH_SOURCE_DIR) / path), {});
}

// The decks in input/<table> are what the sweep writes, and there are no others.
void expect_decks_as_written(const std::string& table, const Sweep& sweep) {
  const fs::path folder = fs::path(GPTBENCH_SOURCE_DIR) / "input" / table;
  std::vector<std::string> written, there;
  for (const SweepRow& row : sweep.rows) {
    if (sweep.is_pruned(row)) continue;
    written.push_back(row.name + ".in");
    EXPECT_EQ(text_of(folder / written.back()), row_deck_text(sweep, row))
        << "write it anew: gptbench --sweep " << sweep.path << " --write-decks input/" << table;
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename();
        entry.path().extension() == ".in" && name.rfind("sweep", 0) != 0)
      there.push_back(name);
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

// The sweep of a published table beside its rows, which stand in the same order.
struct TableRows {
  Sweep sweep;
  std::vector<CsvRow> published;  // [row]
};

TableRows rows_of(const std::string& table, size_t rows, int refused) {
  TableRows out{sweep_of(table), csv_of(table)};
  expect_decks_as_written(table, out.sweep);
  const std::string list = sweep_table(out.sweep, std::vector<std::string>(rows));
  const std::string end =
      "\n" + std::to_string(rows) + " rows, " + std::to_string(refused) + " refused\n";
  EXPECT_EQ(list.substr(list.size() - end.size()), end);
  EXPECT_EQ(out.published.size(), rows);
  EXPECT_EQ(out.sweep.rows.size(), rows);
  out.published.resize(std::min(out.published.size(), out.sweep.rows.size()));
  return out;
}

// Whether the row is refused exactly where the published one contradicts itself; then it has no
// plan.
bool is_planned(const SweepRow& row, bool is_inconsistent) {
  EXPECT_EQ(!row.refused.empty(), is_inconsistent) << row.refused;
  return row.refused.empty();
}

TEST(Tables, Fugaku) {
  const TableRows table = rows_of("fugaku", 37, 3);
  for (size_t r = 0; r < table.published.size(); ++r) {
    const CsvRow& csv = table.published[r];
    const SweepRow& row = table.sweep.rows[r];
    SCOPED_TRACE(row.name);
    const Config& c = row.deck.config;
    EXPECT_EQ(row.nodes, number(csv, "nodes"));
    EXPECT_EQ(row.ranks, row.nodes);
    EXPECT_EQ(c.output.peak_tflops, csv.at("freq_ghz") == "2.2" ? 6.7584 : 6.144);
    EXPECT_EQ(c.model.seq_length, number(csv, "seq_length"));
    EXPECT_EQ(c.memory.activation_checkpointing == Recompute::full,
              csv.at("activation_checkpointing") == "True");
    EXPECT_EQ(c.parallel.data_parallel, number(csv, "dp"));
    EXPECT_EQ(c.parallel.tensor_parallel, number(csv, "tp"));
    EXPECT_EQ(c.parallel.pipeline_parallel, number(csv, "pp"));
    EXPECT_EQ(c.batch.micro_batch_size, number(csv, "mbs"));
    EXPECT_EQ(c.batch.global_batch_size, number(csv, "gbs"));
    // Inconsistent: more or fewer ranks than the decomposition has, or more sequences at once than
    // the global batch.
    const bool is_inconsistent =
        number(csv, "dp") * number(csv, "tp") * number(csv, "pp") != number(csv, "nodes") ||
        number(csv, "dp") * number(csv, "mbs") > number(csv, "gbs");
    if (!is_planned(row, is_inconsistent)) continue;
    const Plan plan = planned(table.sweep, row);
    // 124M with the vocabulary padded to 50304: V h + s h + l (12 h^2 + 13 h) + 2 h.
    const int64_t h = 768, s = number(csv, "seq_length");
    EXPECT_EQ(plan.num_params, 50304 * h + s * h + 12 * (12 * h * h + 13 * h) + 2 * h);
  }
}

TEST(Tables, Zero) {
  const TableRows table = rows_of("zero", 30, 1);
  for (size_t r = 0; r < table.published.size(); ++r) {
    const CsvRow& csv = table.published[r];
    const SweepRow& row = table.sweep.rows[r];
    SCOPED_TRACE(row.name);
    const Config& c = row.deck.config;
    EXPECT_EQ(c.model.preset, lower(csv.at("model")));
    EXPECT_EQ(row.ranks, number(csv, "gpus"));
    EXPECT_EQ(c.parallel.data_parallel, number(csv, "dp"));
    EXPECT_EQ(c.parallel.tensor_parallel, number(csv, "mp"));
    EXPECT_EQ(c.parallel.zero_stage, number(csv, "zero_stage"));
    const bool is_offloaded = csv.at("cpu_offload") == "Yes";
    EXPECT_EQ(contains(c.parallel.offload, Offload::optimizer), is_offloaded);
    EXPECT_EQ(c.parallel.offload_update == OffloadUpdate::host, is_offloaded);
    EXPECT_EQ(c.precision.compute, Precision::fp16);
    // Where stage 3 holds twice the batch of the others with nothing for ZeRO to divide.
    const bool in_parts = c.parallel.zero_stage == 3 && c.parallel.data_parallel == 1;
    EXPECT_EQ(c.memory.partition_checkpoints, in_parts);
    EXPECT_EQ(contains(c.parallel.offload, Offload::activations), in_parts);
    EXPECT_EQ(c.model.num_layers, number(csv, "num_layers"));
    EXPECT_EQ(c.model.hidden_size, number(csv, "hidden_size"));
    EXPECT_EQ(c.model.num_attention_heads, number(csv, "num_heads"));
    EXPECT_EQ(c.run.largest.search, FindLargest::global_batch);
    if (is_planned(row, number(csv, "dp") * number(csv, "mp") != number(csv, "gpus")))
      planned(table.sweep, row);
  }
}

TEST(Tables, Mpt) {
  const TableRows table = rows_of("mpt", 198, 0);
  int rows_of_fp8 = 0;
  for (size_t r = 0; r < table.published.size(); ++r) {
    const CsvRow& csv = table.published[r];
    const SweepRow& row = table.sweep.rows[r];
    SCOPED_TRACE(row.name);
    const bool is_pure = csv.at("mp_mode") == "PURE", is_fp8 = csv.at("precision") == "amp_fp8";
    const bool is_h100 = csv.at("gpu").rfind("h100", 0) == 0;
    const bool is_40gb = csv.at("gpu").find("40gb") != std::string::npos;
    const Config& c = row.deck.config;
    EXPECT_EQ(c.model.preset, "mpt-" + csv.at("model"));
    EXPECT_EQ(row.ranks, number(csv, "gpus"));
    EXPECT_EQ(c.model.seq_length, number(csv, "seq_len"));
    EXPECT_EQ(c.batch.micro_batch_size, number(csv, "micro_batch_size"));
    EXPECT_EQ(c.batch.global_batch_size, number(csv, "global_batch_size"));
    EXPECT_EQ(c.batch.global_batch_size * c.model.seq_length, number(csv, "global_batch_tokens"));
    EXPECT_EQ(row.ranks * c.batch.micro_batch_size * number(csv, "grad_accum"),
              c.batch.global_batch_size);
    EXPECT_EQ(c.output.peak_tflops, is_fp8 ? 1979.0 : is_h100 ? 989.5 : 312.0);
    EXPECT_EQ(c.memory.device_memory_gib, is_40gb ? 40.0 : 80.0);
    EXPECT_EQ(c.memory.activation_checkpointing == Recompute::full,
              csv.at("activation_checkpointing") == "True");
    EXPECT_EQ(c.parallel.zero_stage, csv.at("sharding") == "FULL_SHARD" ? 3 : 0);
    EXPECT_EQ(c.precision.compute, is_fp8 ? Precision::fp8 : Precision::bf16);
    EXPECT_EQ(c.precision.parameters, is_pure ? Precision::bf16 : Precision::fp32);
    EXPECT_EQ(c.precision.gather, Precision::auto_);
    EXPECT_EQ(c.precision.reduce, is_pure ? Precision::bf16 : Precision::fp32);
    EXPECT_EQ(c.precision.master_weights, !is_pure);
    const Plan plan = planned(table.sweep, row);
    EXPECT_EQ(plan.num_params, number(csv, "num_params"));
    // fp8 rows: the products of the blocks' linear layers, never attention and head.
    const double fp8_share = plan.costs.fp8_flops / plan.costs.model_flops;
    EXPECT_EQ(fp8_share > 0.0, is_fp8);
    EXPECT_LT(fp8_share, 1.0);
    rows_of_fp8 += is_fp8 ? 1 : 0;
  }
  EXPECT_EQ(rows_of_fp8, 7);
}

// Models over machines: the cells of the published matrices.
TEST(Tables, Megatron) {
  const TableRows table = rows_of("megatron", 76, 1);
  for (size_t r = 0; r < table.published.size(); ++r) {
    const CsvRow& csv = table.published[r];
    const SweepRow& row = table.sweep.rows[r];
    SCOPED_TRACE(row.name);
    const Config& c = row.deck.config;
    EXPECT_EQ(c.model.preset, csv.at("model"));
    EXPECT_EQ(row.nodes, number(csv, "nodes"));
    EXPECT_EQ(row.ranks, row.nodes * number(csv, "gpus_per_node"));
    EXPECT_EQ(c.parallel.tensor_parallel, number(csv, "mp"));
    EXPECT_EQ(c.parallel.zero_stage, number(csv, "zero_stage"));
    EXPECT_EQ(!c.parallel.offload.empty(), csv.at("offload") == "cpu");
    EXPECT_EQ(c.parallel.offload_update == OffloadUpdate::host, csv.at("offload") == "cpu");
    if (!is_planned(row, number(csv, "mp") > row.ranks)) continue;
    if (!csv.at("micro_batch_size").empty()) {
      EXPECT_EQ(c.batch.micro_batch_size, number(csv, "micro_batch_size"));
      EXPECT_EQ(c.batch.global_batch_size, c.batch.micro_batch_size * number(csv, "grad_accum") *
                                               (row.ranks / number(csv, "mp")));
    }
    const Plan plan = planned(table.sweep, row);
    // The encoder is GPT's with l (12 h^2 + 13 h) and a norm for the embeddings instead of the last
    // one; beside it two token types, the pooler, the transform of the head with its norm, one bias
    // per token, and two sentences.
    const int64_t h = c.model.hidden_size, s = c.model.seq_length, l = c.model.num_layers;
    const int64_t v = 30592;
    EXPECT_EQ(plan.num_params, v * h + s * h + 2 * h + l * (12 * h * h + 13 * h) + 2 * h +
                                   (h * h + h) + (h * h + h) + 2 * h + v + 2 * h + 2);
  }
}

// The plan's verdict for micro-batches of `micro_batch_size` sequences; 0: the row's own batch.
bool fits(const SweepRow& row, DeviceKind device, int64_t micro_batch_size = 0) {
  Config config = resolve(row.deck, row.ranks);
  if (micro_batch_size > 0) {
    config.batch.micro_batch_size = micro_batch_size;
    config.batch.global_batch_size = micro_batch_size * config.parallel.data_parallel;
  }
  const double limit = config.memory.device_memory_gib * static_cast<double>(GiB);
  EXPECT_GT(limit, 0.0) << row.name;
  return highest_need(config, row.ranks, device_traits(device)).bytes + reserve_bytes <=
         static_cast<int64_t>(limit);
}

// Rows that do not fit by the plan, of a table that lists what ran.
std::vector<std::string> rows_too_large(const std::string& table, DeviceKind device) {
  const Sweep sweep = sweep_of(table);
  std::vector<std::string> wrong;
  for (const SweepRow& row : sweep.rows)
    if (row.refused.empty() && !fits(row, device)) wrong.push_back(row.name);
  return wrong;
}

TEST(Tables, MptRowsFitAsPublished) {
  EXPECT_EQ(rows_too_large("mpt", DeviceKind::cuda), std::vector<std::string>{});
}

TEST(Tables, FugakuRowsFitAsPublished) {
  EXPECT_EQ(rows_too_large("fugaku", DeviceKind::host), std::vector<std::string>{});
}

// The published batch fits, and where the model could not be initialized, not even one sequence.
TEST(Tables, ZeroRowsFitAsPublished) {
  const Sweep sweep = sweep_of("zero");
  int compared = 0;
  for (const CsvRow& csv : csv_at("test/reference/zero_8xa100_40gb.csv")) {
    for (const SweepRow& row : sweep.rows) {
      const Config& c = row.deck.config;
      if (c.model.preset != lower(csv.at("model")) ||
          c.parallel.data_parallel != number(csv, "dp") ||
          c.parallel.tensor_parallel != number(csv, "mp") ||
          c.parallel.zero_stage != number(csv, "zero_stage") ||
          contains(c.parallel.offload, Offload::optimizer) != (csv.at("cpu_offload") == "Yes"))
        continue;
      SCOPED_TRACE(row.name);
      const bool has_run = csv.at("max_global_batch").find("Cannot") == std::string::npos;
      EXPECT_EQ(fits(row, DeviceKind::cuda,
                     has_run ? number(csv, "max_global_batch") / number(csv, "dp") : 1),
                has_run);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 18);
}

// The published command lines: all models with all sequence lengths at one number of tokens per
// step, and one row per model.
TEST(Tables, PublishedSweeps) {
  const Sweep product = sweep_of("mpt", "sweep_product.in");
  EXPECT_EQ(product.rows.size(), 8u);
  for (const SweepRow& row : product.rows) {
    const Config& c = row.deck.config;
    EXPECT_EQ(row.refused, "");
    EXPECT_EQ(c.batch.global_batch_size * c.model.seq_length, int64_t{1} << 21);
    EXPECT_EQ(c.run.largest.search, FindLargest::micro_batch);
    EXPECT_TRUE(fits(row, DeviceKind::cuda)) << row.name;
  }
  const std::vector<CsvRow> table = csv_of("mpt");
  for (const SweepRow& row : sweep_of("mpt", "sweep_models.in").rows) {
    const Config& c = row.deck.config;
    EXPECT_EQ(row.refused, "");
    EXPECT_TRUE(std::any_of(table.begin(), table.end(), [&](const CsvRow& csv) {
      return csv.at("gpu") == "h100_80gb" && "mpt-" + csv.at("model") == c.model.preset &&
             number(csv, "gpus") == row.ranks && number(csv, "seq_len") == c.model.seq_length &&
             number(csv, "micro_batch_size") == c.batch.micro_batch_size &&
             number(csv, "global_batch_size") == c.batch.global_batch_size &&
             csv.at("activation_checkpointing") ==
                 (c.memory.activation_checkpointing == Recompute::full ? "True" : "False");
    })) << row.name;
  }
}

// The twins for 2 cores expand, and ask for no more.
TEST(Tables, ShortTwins) {
  for (const char* table : {"fugaku", "zero", "mpt", "megatron"}) {
    for (const SweepRow& row : sweep_of(table, "sweep_short.in").rows) {
      EXPECT_EQ(row.refused, "");
      EXPECT_LE(row.ranks, 2);
    }
  }
  // Keys and values name the rows, also where the full names of the keys are too long.
  EXPECT_EQ(sweep_of("megatron", "sweep_short.in").rows.at(5).name,
            "megatron_short-ppn_1-tp_1-gas_1-zero_3-offload_optimizer-parameters-"
            "offload_update_host");
}

}  // namespace
}  // namespace gptbench
