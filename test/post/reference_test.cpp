// Every row of the published tables (test/reference) through the code that prints ours.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/text.h"
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

// A figure that our style computes from a printed time or throughput, beside the printed one: both
// are rounded to their last digits, and ours lies at most `below` under and `above` over the other
// because what it is computed from was rounded or cut, too.
void expect_follows(const std::string& ours, const std::string& theirs, double below, double above,
                    const std::string& what) {
  const double digits = (rounding(ours) + rounding(theirs)) * (1.0 + 1e-9);
  EXPECT_LE(std::atof(ours.c_str()), std::atof(theirs.c_str()) + digits + above) << what;
  EXPECT_GE(std::atof(ours.c_str()), std::atof(theirs.c_str()) - digits - below) << what;
}

// The columns that our style prints of a published row: those of the row's keys to the letter, and
// figures as they follow from the time, which is printed to 0.05 s: they go with its inverse. One
// row's figures are known not to follow from its time.
TEST(Reference, FugakuRowsPrintedByOurStyle) {
  int followed = 0;
  const std::vector<PublishedRun> rows = published("fugaku_124m.csv");
  for (const PublishedRun& row : rows) {
    const Table table = fugaku_tables({RunView(row.record)}).at(0);
    const double time_s = row.record.summary.rate.sec_per_it, slack = 0.05 / (time_s - 0.05);
    const bool known_not_to =
        row.record.summary.nodes == 256 && row.record.summary.device.clock_ghz == 2.0;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& heading = table.columns[c].heading;
      const std::string &ours = table.rows[0][c], theirs = printed(row, heading);
      const double figure = std::atof(ours.c_str());
      if (heading == "Notes") {
        EXPECT_EQ(ours, "");  // the record of a row has no date
      } else if (heading.find("FLOPs") == std::string::npos) {
        EXPECT_EQ(ours, theirs) << heading;
      } else if (known_not_to) {
        EXPECT_GT(figure - std::atof(theirs.c_str()),
                  rounding(ours) + rounding(theirs) + figure * slack)
            << heading;
      } else {
        expect_follows(ours, theirs, figure * slack, figure * slack, heading);
        ++followed;
      }
    }
  }
  EXPECT_EQ(followed, 2 * static_cast<int>(rows.size() - 1));
}

TEST(Reference, RowsThatWereNeverFilledHaveNoFigures) {
  const std::vector<PublishedRun> rows = published("fugaku_124m_unfilled.csv");
  ASSERT_FALSE(rows.empty());
  for (const PublishedRun& row : rows) {
    EXPECT_EQ(RunView(row.record).rates().tflops("megatron"), 0.0);
    EXPECT_GT(row.record.summary.nodes, 0);
  }
}

// The columns that our style prints of a published row. Figures follow from the throughput, which
// is cut to whole tokens: ours may lie by a share of 1 / tokens below. Rows of MP Mode PURE print
// Model TFLOP as 312 / 100 times the rounded MFU, so 0.005 % of the peak is added on both sides.
TEST(Reference, MptRowsPrintedByOurStyle) {
  const std::vector<PublishedRun> rows = published("mpt_training.csv");
  ASSERT_FALSE(rows.empty());
  for (const PublishedRun& row : rows) {
    const Table table = mpt_tables({RunView(row.record)}).at(0);
    const double cut = 1.0 / figure_of(row, "Throughput (T/s)");
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& heading = table.columns[c].heading;
      const std::string &ours = table.rows[0][c], theirs = printed(row, heading);
      const double figure = std::atof(ours.c_str());
      if (heading == "MFU" || heading == "HFU") {
        expect_follows(ours, theirs, figure * cut, 0.0, heading);
      } else if (heading == "Model TFLOP") {
        const double of_mfu = printed(row, "MP Mode") == "PURE" ? 3.12 * 0.005 : 0.0;
        expect_follows(ours, theirs, figure * cut + of_mfu, of_mfu, heading);
      } else if (heading == "Throughput (S/s)") {
        EXPECT_EQ(std::floor(figure), figure_of(row, heading));
      } else if (heading == "Throughput (T/s/GPU)") {  // ours is rounded, theirs is cut
        EXPECT_GE(figure, figure_of(row, heading));
        EXPECT_LE(figure, figure_of(row, heading) + 1.0);
      } else {
        EXPECT_EQ(ours, theirs) << heading;
      }
    }
  }
}

// Rows with fp8 GEMMs are published against the fp8 peak; half of it is that of bf16.
TEST(Reference, MptFp8AgainstBothDenominators) {
  int rows_of_fp8 = 0;
  for (const PublishedRun& row : published("mpt_training.csv")) {
    const auto mfu = [&](const char* peak_type) {
      return mpt_tables({RunView(row.record, {"", 0.0, peak_type})}).at(0).rows[0][4];
    };
    const std::string shown = printed(row, "MFU"), both = mfu("both");
    const size_t comma = both.find(" bf16, ");
    if (printed(row, "Precision") != "amp_fp8") {
      EXPECT_EQ(comma, std::string::npos) << both;
      continue;
    }
    ++rows_of_fp8;
    ASSERT_NE(comma, std::string::npos) << both;
    const std::string of_bf16 = both.substr(0, comma), of_fp8 = both.substr(comma + 7);
    EXPECT_EQ(of_fp8, mfu("fp8") + " fp8");
    EXPECT_EQ(of_bf16, mfu("bf16"));
    const double cut = figure_of(row, "MFU") / figure_of(row, "Throughput (T/s)");
    expect_follows(mfu("fp8"), shown, cut, 0.0, "fp8");
    // Twice the printed figure has twice its rounding.
    EXPECT_NEAR(std::atof(of_bf16.c_str()), 2.0 * figure_of(row, "MFU"), 0.015 + 2.0 * cut);
  }
  EXPECT_EQ(rows_of_fp8, 3);
}

// The columns that our style prints of a published row. Throughput is batch over time, which is
// printed to some 0.1 ms; memory of each GPU is not in a record's summary.
TEST(Reference, ZeroRowsPrintedByOurStyle) {
  int trained = 0;
  for (const PublishedRun& row : published("zero_8xa100_40gb.csv")) {
    const Table table = zero_tables({RunView(row.record)}).at(0);
    const bool did_train = printed(row, "Max Global BSZ") != "Cannot even initialize model";
    trained += did_train;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& heading = table.columns[c].heading;
      const std::string &ours = table.rows[0][c], theirs = printed(row, heading);
      const bool is_time = heading == "time/it (ms)", is_rate = heading.find("Through") == 0;
      if (heading.find("Memory Usage") != std::string::npos) {
        EXPECT_EQ(ours, "-") << heading;
      } else if ((is_time || is_rate) && !did_train) {
        EXPECT_EQ(ours, "OOM") << heading;
      } else if (is_time) {
        expect_follows(ours, theirs, 0.0, 0.0, heading);
      } else if (is_rate) {
        const std::string time = printed(row, "time/it (ms)");
        const double slack = std::atof(ours.c_str()) * rounding(time) / std::atof(time.c_str());
        expect_follows(ours, theirs, slack, slack, heading);
      } else if (heading == "Notes") {
        EXPECT_EQ(ours, did_train ? "" : "OOM");
      } else {
        EXPECT_EQ(ours, theirs) << heading;
      }
    }
  }
  EXPECT_EQ(trained, 17);
}

// A run of tensor-parallel size 8, in the styles that were not published for it. The largest of the
// eight GPUs has 29012 MiB = 30.4e9 bytes; 128 sequences in 1.520643019 s; V = 50304: 72 * 128 *
// 1024 * 24 * 1024^2 * (1 + 1 / 6 + 50304 / (16 * 24 * 1024)) = 3.0746e14 FLOPs per step, so 25.3
// TFLOP/s a GPU.
TEST(Reference, ZeroRowInOtherStyles) {
  const std::vector<PublishedRun> rows = published("zero_8xa100_40gb.csv");
  const RunView run(rows.at(2).record, {}, &rows.at(2).cells);
  EXPECT_EQ(megatron_tables({run}).at(0).rows.at(0),
            (std::vector<std::string>{"published: GPT-345M (mp=8, ZeRO 2)",
                                      "84.17 samples/sec\n25.3 tflops/gpu\n30.4 GB"}));
  const Table scaling = scaling_tables({run}).at(0);
  EXPECT_EQ(std::vector<std::string>(scaling.rows[0].begin(), scaling.rows[0].begin() + 7),
            (std::vector<std::string>{"published", "8", "1", "1", "8", "1", "1"}));
}

// 32 GPUs are four nodes of eight.
TEST(Reference, MptRowInTheScalingStyle) {
  const std::vector<PublishedRun> rows = published("mpt_training.csv");
  const Table scaling = scaling_tables({RunView(rows.at(0).record)}).at(0);
  EXPECT_EQ(std::vector<std::string>(scaling.rows[0].begin(), scaling.rows[0].begin() + 8),
            (std::vector<std::string>{"32", "4", "32", "1", "1", "1", "14", "1344"}));
}

// Beside measured runs a published row stands as it was printed, with the units of its columns.
TEST(Reference, PublishedRowsAsTheyWerePrinted) {
  const auto row_of = [](const char* file, size_t row, std::vector<Table> (*style)(const Runs&)) {
    const PublishedRun run = published(file).at(row);
    const std::vector<std::string> cells =
        style({RunView(run.record, {}, &run.cells)}).at(0).rows.at(0);
    return join({cells.begin(), cells.end()}, "|");
  };
  EXPECT_EQ(row_of("fugaku_124m.csv", 3, fugaku_tables),
            "published|512 (2.2Hz)|124M|512|1|1|2|1024|11046.9 MiB|3.2|0.50|0.25|02-15");
  EXPECT_EQ(row_of("fugaku_124m.csv", 7, fugaku_tables),
            "published|256 (2.0Hz)|124M|256|1|1|1|1024|4587.9 MiB|9.9|0.42|0.105|02-14");
  EXPECT_EQ(row_of("mpt_training.csv", 0, mpt_tables),
            "published|30b|2048|32|h100_80gb|43.92|58.57|4.346371|14|3|1344|36|73860|2308|2752512|"
            "amp_bf16|DEFAULT|FULL_SHARD|True|False|29975214080");
  EXPECT_EQ(row_of("zero_8xa100_40gb.csv", 13, zero_tables),
            "published|GPT-5.8B|72|2560|32|8|1|8|0|No|16|1691.711626|9.457876719|36738MiB|36978MiB|"
            "37170MiB|36724MiB|36948MiB|36720MiB|37134MiB|37034MiB|if batch size = 32, it gives "
            "CUDA Out of Memory on the 25th iteration");
  EXPECT_EQ(row_of("zero_8xa100_40gb.csv", 12, zero_tables),
            "published|GPT-5.8B|72|2560|32|8|8|1|0|No|Cannot even initialize model|||||||||||");
}

// Restated, a published row follows the requested formula. L = 48, C = 7168, V = 50368, T = 2048,
// N = 29975214080, 73860 / 32 tokens/s per GPU: by the convention causal 72 L C^2 + 6 C V + 6 L C T
// FLOPs per token are 424.61 TFLOP/s, 42.91 % of 989.5; by its own, 6 N + 12 L C T are 434.64,
// 87.85 % of half that peak.
TEST(Reference, PublishedRowsRestated) {
  const std::vector<PublishedRun> rows = published("mpt_training.csv");
  const auto restated = [&](const Restatement& restatement) {
    return mpt_tables({RunView(rows[0].record, restatement, &rows[0].cells)}).at(0);
  };
  const Table causal = restated({"causal", 0.0, ""}), peak = restated({"", 989.5 / 2.0, ""});
  EXPECT_EQ(causal.rows[0][5], "42.91");
  EXPECT_EQ(causal.rows[0][8], "14");  // as printed
  EXPECT_EQ(causal.caption.rfind("Training throughput, FLOPs by convention causal. ", 0), 0U);
  EXPECT_EQ(peak.rows[0][5], "87.85");
  EXPECT_EQ(peak.caption.rfind("Training throughput. ", 0), 0U);
  // MFU* and HFU*: 6 N FLOPs per token, and 8 N.
  const Table star = restated({"mpt_star", 0.0, ""});
  EXPECT_EQ(star.columns[5].heading, "MFU*");
  EXPECT_EQ(star.columns[6].heading, "HFU*");
  EXPECT_EQ(star.rows[0][5], "41.95");
  EXPECT_EQ(star.rows[0][6], "55.94");
}

}  // namespace
}  // namespace gptbench
