// Every row of the published tables (test/reference) through the code that prints ours.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "post/csv.h"
#include "post/published.h"
#include "post/style.h"

namespace gptbench {
namespace {

std::vector<PublishedRun> published(const std::string& name) {
  return read_published(std::string(GPTBENCH_SOURCE_DIR) + "/test/reference/" + name);
}

std::string printed(const PublishedRun& row, const std::string& heading) {
  const auto cell = row.cells.by_heading.find(heading);
  return cell == row.cells.by_heading.end() ? "no cell " + heading : cell->second;
}

double figure_of(const PublishedRun& row, const std::string& heading) {
  return std::atof(printed(row, heading).c_str());
}

// Half a unit of the last digit that a figure is printed with: 0.005 of "0.56".
double rounding(const std::string& printed_figure) {
  const size_t point = printed_figure.find('.');
  const size_t decimals = point == std::string::npos ? 0 : printed_figure.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

TEST(Reference, FugakuTflopsFollowFromTimes) {
  int followed = 0;
  const std::vector<PublishedRun> rows = published("fugaku_124m.csv");
  for (const PublishedRun& row : rows) {
    const RunView run(row.record);
    const std::string shown = printed(row, "TFLOPs");
    // The time is printed to 0.05 s; TFLOPs go with its inverse.
    const double tflops = run.tflops("megatron", true), time = row.record.summary.sec_per_it;
    const double bound = rounding(shown) + tflops * 0.05 / (time - 0.05);
    const bool known_not_to = run.summary().nodes == 256 && run.summary().clock_ghz == 2.0;
    if (known_not_to) {
      EXPECT_GT(std::fabs(tflops - std::atof(shown.c_str())), bound);
      continue;
    }
    EXPECT_NEAR(tflops, std::atof(shown.c_str()), bound * (1.0 + 1e-9)) << printed(row, "Nodes");
    ++followed;
  }
  EXPECT_EQ(followed + 1, static_cast<int>(rows.size()));
}

// PetaFLOPs = TFLOPs x nodes / 1024, from figures that were rounded themselves.
TEST(Reference, FugakuPetaflopsAreTflopsTimesNodesOver1024) {
  for (const PublishedRun& row : published("fugaku_124m.csv")) {
    const double nodes = static_cast<double>(row.record.summary.nodes);
    const double from_tflops = figure_of(row, "TFLOPs") * nodes / 1024.0;
    const std::string shown = printed(row, "Est. Aggr. PetaFLOPs");
    EXPECT_NEAR(from_tflops, std::atof(shown.c_str()),
                rounding(shown) + rounding(printed(row, "TFLOPs")) * nodes / 1024.0)
        << printed(row, "Nodes");
  }
}

// The columns that we print of such a run are the published ones: text where they are given, and
// figures within the rounding of the time and of the last digits.
TEST(Reference, FugakuRowsPrintedByOurStyle) {
  for (const PublishedRun& row : published("fugaku_124m.csv")) {
    const Table table = fugaku_tables({RunView(row.record)}).at(0);
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& heading = table.columns[c].heading;
      if (heading == "Notes" || heading == "TFLOPs" || heading == "TFLOPs*" ||
          heading == "Est. Aggr. PetaFLOPs")
        continue;
      EXPECT_EQ(table.rows[0][c], printed(row, heading)) << heading;
    }
  }
}

TEST(Reference, RowsThatWereNeverFilledHaveNoFigures) {
  const std::vector<PublishedRun> rows = published("fugaku_124m_unfilled.csv");
  ASSERT_FALSE(rows.empty());
  for (const PublishedRun& row : rows) {
    EXPECT_EQ(RunView(row.record).tflops("megatron"), 0.0);
    EXPECT_GT(row.record.summary.nodes, 0);
  }
}

TEST(Reference, MptUtilisationFollowsFromThroughput) {
  const std::vector<PublishedRun> rows = published("mpt_training.csv");
  ASSERT_FALSE(rows.empty());
  for (const PublishedRun& row : rows) {
    const RunView run(row.record);
    ASSERT_GT(run.peak_tflops(), 0.0) << run.device_name();
    EXPECT_NEAR(run.utilisation("mpt", false), figure_of(row, "MFU"), 0.1) << run.model_name();
    EXPECT_NEAR(run.utilisation("mpt", true), figure_of(row, "HFU"), 0.1) << run.model_name();
    // In units of 1e14 FLOP/s a device; throughputs are printed to one token, and the two columns
    // are means of their own that agree to 1.1e-4.
    const double tflop = figure_of(row, "Model TFLOP");
    EXPECT_NEAR(run.tflops("mpt") / 100.0, tflop,
                tflop * std::max(1.1e-4, 1.0 / run.summary().tokens_per_s));
  }
}

// Everything else that the style prints of such a run, to the letter. Throughput a GPU and whole
// sequences are cut in the published table, from figures that the file does not have.
TEST(Reference, MptRowsPrintedByOurStyle) {
  for (const PublishedRun& row : published("mpt_training.csv")) {
    const Table table = mpt_tables({RunView(row.record)}).at(0);
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& heading = table.columns[c].heading;
      const std::string &ours = table.rows[0][c], theirs = printed(row, heading);
      if (heading == "MFU" || heading == "HFU" || heading == "Model TFLOP") continue;
      if (heading.find("Throughput") == 0)
        EXPECT_NEAR(std::trunc(std::atof(ours.c_str())), std::atof(theirs.c_str()), 1.0) << heading;
      else
        EXPECT_EQ(ours, theirs) << heading;
    }
  }
}

// Rows with fp8 GEMMs are published against the fp8 peak; half of it is that of bf16.
TEST(Reference, MptFp8AgainstBothDenominators) {
  int rows_of_fp8 = 0;
  for (const PublishedRun& row : published("mpt_training.csv")) {
    const RunView run(row.record, {"", 0.0, "both"});
    const auto values = run.utilisations("mpt", false);
    if (run.text("precision", "compute") != "fp8") {
      ASSERT_EQ(values.size(), 1u);
      EXPECT_NEAR(values[0].second, figure_of(row, "MFU"), 0.1);
      continue;
    }
    ++rows_of_fp8;
    ASSERT_EQ(values.size(), 2u);
    EXPECT_EQ(values[0].first, "bf16");
    EXPECT_NEAR(values[0].second, 2.0 * figure_of(row, "MFU"), 0.2);
    EXPECT_NEAR(values[1].second, figure_of(row, "MFU"), 0.1);
    EXPECT_NEAR(RunView(row.record, {"", 0.0, "bf16"}).utilisation("mpt", false), values[0].second,
                1e-9);
  }
  EXPECT_GT(rows_of_fp8, 0);
}

TEST(Reference, ZeroThroughputIsBatchOverTime) {
  int trained = 0;
  for (const PublishedRun& row : published("zero_8xa100_40gb.csv")) {
    const RunView run(row.record);
    const Table table = zero_tables({run}).at(0);
    EXPECT_EQ(table.rows[0][0], printed(row, "Model"));
    if (printed(row, "Max Global BSZ") == "Cannot even initialize model") {
      EXPECT_EQ(run.outcome(), "OOM");
      EXPECT_EQ(table.rows[0][9], "Cannot even initialize model");
      continue;
    }
    ++trained;
    const std::string shown = printed(row, "Throughput (samples/sec)");
    const std::string time = printed(row, "time/it (ms)");
    const double relative = rounding(time) / std::atof(time.c_str());
    EXPECT_NEAR(run.summary().samples_per_s, std::atof(shown.c_str()),
                rounding(shown) + relative * std::atof(shown.c_str()));
  }
  EXPECT_GT(trained, 0);
}

// Beside a measured run the published row stands as it was printed; restated, it follows the
// formula that was asked for.
TEST(Reference, PublishedBesideMeasured) {
  const std::vector<PublishedRun> rows = published("mpt_training.csv");
  const RunView measured(rows[0].record), theirs(rows[0].record, {}, &rows[0].cells);
  const Table table = mpt_tables({measured, theirs}).at(0);
  EXPECT_EQ(table.columns[0].heading, "Source");
  EXPECT_EQ(table.rows[0][0], "measured");
  EXPECT_EQ(table.rows[1][0], "published");
  for (size_t c = 1; c < table.columns.size(); ++c)
    EXPECT_EQ(table.rows[1][c], printed(rows[0], table.columns[c].heading));
  const RunView restated(rows[0].record, {"causal", 0.0, ""}, &rows[0].cells);
  const Table other = mpt_tables({restated}).at(0);
  EXPECT_LT(std::atof(other.rows[0][5].c_str()), figure_of(rows[0], "MFU"));  // half the attention
  EXPECT_EQ(other.rows[0][8], printed(rows[0], "MicroBatchSize"));
  EXPECT_NE(other.caption.find("FLOPs by convention causal"), std::string::npos);
}

}  // namespace
}  // namespace gptbench
