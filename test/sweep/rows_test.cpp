// Which result files a sweep takes for those of its rows.
#include "sweep/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>

#include "io/result_file.h"
#include "measure/job_limit.h"
#include "run/signals.h"

namespace gptbench {
namespace {

class RowResult : public testing::Test {
 protected:
  explicit RowResult(const std::string& setting = "run.find_largest=none",
                     const std::string& other = "run.verify=true") {
    const Sweep sweep =
        expand_sweep("s.in",
                     "&model num_layers = 1, hidden_size = 16, num_attention_heads = 4,\n"
                     "  vocab_size = 32, seq_length = 8 /\n"
                     "&sweep vary(1) = 'ranks = 2' /\n",
                     {"output.directory=" + directory_, setting, other});
    row_ = sweep.rows.at(0);
    std::filesystem::create_directories(row_directory(row_));
    record_ = record_without_result(sweep, row_, {}, "", "", false);
  }
  ~RowResult() override { std::filesystem::remove_all(directory_); }

  // Whether a file is the row's that differs from it in one key.
  bool is_taken_with(const std::string& group, const std::string& key, const KeyValue& value) {
    Record other = record_;
    for (ConfigEntry& entry : other.config)
      if (entry.group == group && entry.key == key) entry.value = value;
    write_result(row_directory(row_), other);
    return row_result(row_).has_value();
  }

  std::string directory_ = testing::TempDir() + "row_result";
  SweepRow row_;
  Record record_;
};

TEST_F(RowResult, IsThatOfTheSameDeck) {
  EXPECT_FALSE(row_result(row_).has_value());
  EXPECT_TRUE(is_taken_with("run", "seed", row_.deck.config.run.seed));
  EXPECT_FALSE(is_taken_with("run", "seed", row_.deck.config.run.seed + 1));
  EXPECT_FALSE(is_taken_with("run", "name", std::string("another")));
  EXPECT_FALSE(is_taken_with("batch", "micro_batch_size", int64_t{7}));
  record_.summary.world_size = 4;
  EXPECT_FALSE(is_taken_with("run", "seed", row_.deck.config.run.seed));
}

// What a run resolves, or was given to find it.
TEST_F(RowResult, MayBeOfAnyDeviceLibraryAndPlace) {
  EXPECT_TRUE(is_taken_with("run", "device", std::string("cuda")));
  EXPECT_TRUE(is_taken_with("run", "comm", std::string("nccl")));
  EXPECT_TRUE(is_taken_with("run", "mpi_arrays", std::string("device")));
  EXPECT_TRUE(is_taken_with("output", "directory", std::string("elsewhere")));
  EXPECT_TRUE(is_taken_with("run", "time_limit_s", 5.0));
  row_.deck.config.run.device = DeviceKind::host;
  row_.deck.config.run.comm = CommLibrary::mpi;
  row_.deck.config.run.mpi_arrays = MpiArrays::host;
  EXPECT_FALSE(is_taken_with("run", "device", std::string("cuda")));
  EXPECT_FALSE(is_taken_with("run", "comm", std::string("nccl")));
  EXPECT_FALSE(is_taken_with("run", "mpi_arrays", std::string("device")));
}

// Only what ends a run with the batch job around it. A limit of the row's own, or SIGUSR1, by which
// a sweep or a user ends a row, is an outcome of the row.
TEST(CutOffByJob, IsTheEndOfTheJobOrItsWarning) {
  const auto is_cut_off = [](const std::string& status, const std::string& reason) {
    Record record;
    record.outcome.status = status;
    record.outcome.reason = reason;
    return is_cut_off_by_job(record);
  };
  EXPECT_TRUE(is_cut_off("TIMEOUT", job_end_reason));
  EXPECT_TRUE(is_cut_off("TIMEOUT", stopped_by(SIGTERM) + " after the step in hand"));
  EXPECT_TRUE(is_cut_off("TIMEOUT", stopped_by(SIGTERM) + " before the first step"));
  EXPECT_TRUE(is_cut_off("TIMEOUT", stopped_by(SIGUSR2) + " after the step in hand"));
  EXPECT_FALSE(is_cut_off("TIMEOUT", stopped_by(SIGUSR1) + " after the step in hand"));
  EXPECT_FALSE(is_cut_off("TIMEOUT", "stopped: another step would pass time_limit_s = 5"));
  EXPECT_FALSE(is_cut_off("FAILED", stopped_by(SIGTERM) + " after the step in hand; disk full"));
}

class RowResultOfLargest : public RowResult {
 protected:
  RowResultOfLargest() : RowResult("run.find_largest=micro_batch") {}
};

// Two ranks of data parallelism, one micro-batch per step, 10 steps at least.
TEST_F(RowResultOfLargest, MayHaveFoundItsBatch) {
  EXPECT_TRUE(is_taken_with("run", "seed", row_.deck.config.run.seed));  // nothing was run
  const auto set = [&](const std::string& group, const std::string& key, int64_t value) {
    for (ConfigEntry& entry : record_.config)
      if (entry.group == group && entry.key == key) entry.value = value;
  };
  const int64_t steps = std::max(row_.deck.config.run.steps, row_.deck.config.run.largest.steps);
  set("batch", "micro_batch_size", 7);
  set("batch", "global_batch_size", 14);
  set("run", "steps", steps);
  EXPECT_TRUE(is_taken_with("run", "seed", row_.deck.config.run.seed));
  EXPECT_FALSE(is_taken_with("run", "seed", row_.deck.config.run.seed + 1));
  EXPECT_FALSE(is_taken_with("run", "steps", steps + 1));
  EXPECT_FALSE(is_taken_with("batch", "global_batch_size", int64_t{28}));
  EXPECT_FALSE(is_taken_with("batch", "micro_batch_size", std::numeric_limits<int64_t>::max()));
  // A global batch that the deck states is that of the run.
  row_.deck.config.batch.global_batch_size = 28;
  EXPECT_FALSE(is_taken_with("run", "seed", row_.deck.config.run.seed));
}

class RowResultOfSearchedLayout : public RowResult {
 protected:
  RowResultOfSearchedLayout() : RowResult("run.layout=auto") {}
};

TEST_F(RowResultOfSearchedLayout, MayHaveFoundItsLayout) {
  EXPECT_TRUE(is_taken_with("parallel", "tensor_parallel", int64_t{2}));
  EXPECT_TRUE(is_taken_with("batch", "micro_batch_size", int64_t{7}));
  EXPECT_FALSE(is_taken_with("model", "num_layers", int64_t{2}));
}

class RowResultOfKeptLayout : public RowResult {
 protected:
  RowResultOfKeptLayout() : RowResult("run.layout=auto", "parallel.tensor_parallel=2") {}
};

TEST_F(RowResultOfKeptLayout, HasWhatTheSweepSets) {
  EXPECT_TRUE(is_taken_with("batch", "micro_batch_size", int64_t{7}));
  EXPECT_FALSE(is_taken_with("parallel", "tensor_parallel", int64_t{1}));
}

Sweep small_sweep(const std::string& keys, const std::vector<std::string>& overrides) {
  return expand_sweep("s.in",
                      "&model num_layers = 1, hidden_size = 16, num_attention_heads = 4,\n"
                      "  vocab_size = 32, seq_length = 8 /\n&sweep ranks = 4, " +
                          keys + " /\n",
                      overrides);
}

// What the sweep or its command line sets of the layout stands behind the deck, where the search of
// the row's run keeps it.
TEST(SearchedLayout, KeepsTheKeysOfTheSweep) {
  using Words = std::vector<std::string>;
  const auto command = [](const std::string& launcher, const std::string& layout) {
    const Sweep sweep = small_sweep(
        "vary(1) = 'pipeline_parallel = 1', launcher = " + launcher,
        {"run.layout=" + layout, "parallel.rank_order=tp_cp_dp_pp", "batch.global_batch_size=8"});
    return row_command(sweep, sweep.rows.at(0), "gptbench", "deck.in");
  };
  const Words kept = {"parallel.pipeline_parallel=1", "parallel.rank_order='tp_cp_dp_pp'",
                      "batch.global_batch_size=8"};
  EXPECT_EQ(command("'a'", "auto"), (Words{"a", "gptbench", "deck.in", kept[0], kept[1], kept[2]}));
  EXPECT_EQ(command("'a {deck} b {program}'", "auto"),
            (Words{"a", "deck.in", kept[0], kept[1], kept[2], "b", "gptbench"}));
  EXPECT_EQ(
      command("'sh -c \"{program} {deck}; b\"'", "auto"),
      (Words{"sh", "-c", "gptbench deck.in " + kept[0] + " " + kept[1] + " " + kept[2] + "; b"}));
  EXPECT_EQ(command("'a'", "given"), (Words{"a", "gptbench", "deck.in"}));
}

// A row that a memory of 0.06 GiB does not hold with its own batch and layout.
TEST(TooLarge, JudgesWhatARunMayTake) {
  const auto reason = [](const std::string& setting) {
    return too_large(small_sweep("vary(1) = 'seed = 1', prune = 'memory'",
                                 {"run.device=host", "memory.device_memory_gib=0.06",
                                  "batch.micro_batch_size=65536", setting}))
        .at(0);
  };
  EXPECT_NE(reason("run.find_largest=none"), "");
  EXPECT_EQ(reason("run.find_largest=micro_batch"), "");
  EXPECT_EQ(reason("run.layout=auto"), "");
}

}  // namespace
}  // namespace gptbench
