// What all styles have in common.
#include "post/style.h"

#include <gtest/gtest.h>

#include "made_record.h"
#include "style_records.h"

namespace gptbench {
namespace {

// What would mislead beside other tables: units, cut figures, misprints, names.
TEST(Styles, CaptionsExplainWhatPublishedTablesDoDifferently) {
  const Record mpt = mpt_record(), fugaku = fugaku_record({1, 2.0, 1, 7718.0, 1489.7});
  const auto explains = [](const Table& table, const char* what) {
    return table.caption.find(what) != std::string::npos;
  };
  for (const char* const what : {"units of 1e14 FLOP/s", "cut to whole sequences"})
    EXPECT_TRUE(explains(mpt_tables({RunView(mpt)}).at(0), what)) << what;
  for (const char* const what : {"Hz stands for GHz", "x ranks / 1024"})
    EXPECT_TRUE(explains(fugaku_tables({RunView(fugaku)}).at(0), what)) << what;
  EXPECT_TRUE(explains(zero_tables({RunView(mpt)}).at(0), "only where a search found it"));
  EXPECT_TRUE(explains(megatron_tables({RunView(mpt)}).at(0), "mp: tensor parallel"));
}

TEST(Styles, ValuesOfKeys) {
  Record r = made_record();
  set_key(r, "run", "text", std::string("words"));
  set_key(r, "run", "on", true);
  set_key(r, "run", "off", false);
  set_key(r, "run", "count", int64_t{12});
  set_key(r, "run", "real", 0.5);
  const RunView run(r);
  std::string cells;
  for (const char* const key : {"text", "on", "off", "count", "real", "missing"})
    cells += key_cell(run, "run", key) + " ";
  EXPECT_EQ(cells, "words true false 12 0.5 - ");
}

// Warm-up 1 and three timed steps in made_record; the step skipped in the warm-up is not noted.
TEST(Styles, NoteSkippedSteps) {
  const std::string note = "2 of 5 steps skipped, not timed";
  Record r = made_record();
  EXPECT_EQ(RunView(r).skipped_note(), "");
  EXPECT_EQ(cell(mpt_tables({RunView(r)}).at(0), 0, "Notes"), "no column Notes");
  r.steps.skipped = {1, 0, 1, 1};
  for (const Style& style : styles) {
    if (style.tables == comm_tables) continue;  // its rows are messages
    const std::string text = format_csv(style.tables({RunView(r)}));
    EXPECT_NE(text.find(note), std::string::npos) << style.name << "\n" << text;
  }
}

// Figures stand to the right, text to the left.
TEST(Styles, TextColumnsAreAlignedToTheLeft) {
  const Record r = uneven_record();
  const auto text_columns = [&](std::vector<Table> (*style)(const Runs&)) {
    std::string names;
    const Table table = style({RunView(r)}).at(0);
    for (const Column& column : table.columns)
      if (!column.right) names += (names.empty() ? "" : ", ") + column.heading;
    return names;
  };
  EXPECT_EQ(text_columns(native_tables), "Run, Layout, Verdict");
  EXPECT_EQ(text_columns(fugaku_tables), "Notes");
  EXPECT_EQ(text_columns(mpt_tables),
            "Model, GPU, Precision, MP Mode, Sharding Strategy, Activation Checkpointing, "
            "Activation CPUOffload");
  EXPECT_EQ(text_columns(zero_tables), "Model, CPU Offload, Notes");
  EXPECT_EQ(text_columns(megatron_tables), "model \\ num_node * num_gpus, 4*15");
  EXPECT_EQ(text_columns(scaling_tables), "Notes");
  Record other = r;
  other.summary.flops.convention = "mpt";
  const std::vector<Table> tables = native_tables({RunView(r), RunView(other)});
  for (const Column& column : tables.at(0).columns)
    EXPECT_FALSE(column.heading == "FLOPs" && column.right);
}

// A projected row says so in every style, beside a measured one and alone.
TEST(Styles, ProjectedRowsSaySo) {
  Record projected = made_record();
  projected.projection.machine = "h100";
  projected.outcome.verdict = "PROJECTED";
  const Record measured = made_record();
  for (const auto style : {native_tables, fugaku_tables, mpt_tables, zero_tables, scaling_tables}) {
    const std::vector<Table> both = style({RunView(projected), RunView(measured)});
    EXPECT_EQ(both.at(0).columns.at(0).heading, "Source");
    EXPECT_EQ(both.at(0).rows.at(0).at(0), "projected");
    if (style == scaling_tables)  // a series of its own
      EXPECT_EQ(both.at(1).columns.at(0).heading, "Ranks");
    else
      EXPECT_EQ(both.at(0).rows.at(1).at(0), "measured");
    const std::vector<Table> measured_alone = style({RunView(measured)});
    EXPECT_NE(measured_alone.at(0).columns.at(0).heading, "Source");
  }
  EXPECT_EQ(megatron_tables({RunView(projected)}).at(0).rows.at(0).at(0).rfind("projected: ", 0),
            0u);
  EXPECT_EQ(RunView(projected).source_mark(), "projected: ");
  const Table both = native_tables({RunView(projected), RunView(measured)}).at(0);
  EXPECT_EQ(cell(both, 0, "Spread (%)"), "-");  // of one step
  EXPECT_EQ(cell(both, 1, "Spread (%)"), "4.7");
  EXPECT_FALSE(RunView(projected).is_measured());
}

// Two sequences at a time on each of as many replicas as a number can say: one round for all.
TEST(RunView, BatchesOfNumbersWithoutMeasure) {
  Record r = made_record();
  set_key(r, "batch", "micro_batch_size", int64_t{2});
  set_key(r, "parallel", "data_parallel", INT64_MAX);
  EXPECT_EQ(RunView(r).deck().gradient_accumulation(), 1);
  set_key(r, "batch", "global_batch_size", int64_t{0});
  EXPECT_EQ(RunView(r).deck().global_batch(), 0);
  set_key(r, "parallel", "data_parallel", int64_t{0});
  for (const char* const axis : {"tensor_parallel", "pipeline_parallel", "context_parallel"})
    set_key(r, "parallel", axis, INT64_MAX);
  EXPECT_EQ(RunView(r).deck().data_parallel(), 1);
}

// A record of another program version may lack anything.
TEST(Styles, AnEmptyRecordHasRowsInEveryStyle) {
  const Record empty;
  for (const Style& style : styles) {
    if (style.tables == comm_tables) continue;  // its rows are messages
    const std::vector<Table> tables = style.tables({RunView(empty)});
    ASSERT_EQ(tables.size(), 1u) << style.name;
    EXPECT_EQ(tables[0].rows.size(), 1u) << style.name;
    EXPECT_EQ(tables[0].rows[0].size(), tables[0].columns.size()) << style.name;
  }
}

TEST(RunView, AModelWithoutAPresetIsNamedByFamilyAndSize) {
  Record r = made_record();
  set_key(r, "model", "preset", std::string(""));
  set_key(r, "model", "family", std::string("llama"));
  EXPECT_EQ(RunView(r).model_name(), "LLAMA-124M");
}

}  // namespace
}  // namespace gptbench
