// What all kinds of pictures have in common: the data beside them, and figures that no run should
// have. gptpost_test.sh and report_test.sh draw them.
#include "post/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "has.h"
#include "made_record.h"
#include "post/svg.h"
#include "read_picture.h"

namespace gptbench {
namespace {

// Columns of the data of a picture, and one of its rows.
std::string columns_of(const Picture& picture) {
  const Table table = data_of(picture);
  std::string text;
  for (const Column& column : table.columns) text += column.heading + " ";
  return text;
}
std::string row_of(const Picture& picture, size_t row) {
  const Table table = data_of(picture);
  std::string text;
  for (const std::string& cell : table.rows.at(row)) text += cell + "|";
  return text;
}

// The file beside a picture: a heading and a row per mark, cells between tabs.
TEST(Plots, DataFileOfAPicture) {
  const std::string directory = testing::TempDir() + "gptbench_plot_data";
  std::filesystem::remove_all(directory);
  const Record a = on(1, 250), b = on(2, 500);
  draw_plots({RunView(a), RunView(b)}, "throughput", directory);
  std::ifstream file(directory + "/throughput.dat");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line.rfind('#', 0) != 0) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].rfind("series\tx\t", 0), 0U) << lines[0];
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'),
              std::count(lines[0].begin(), lines[0].end(), '\t'))
        << line;
  std::filesystem::remove_all(directory);
}

// However many runs there are, each has the pictures of single runs. No run was traced.
TEST(Plots, PicturesOfManySingleRuns) {
  const std::string directory = testing::TempDir() + "gptbench_plot_many";
  std::filesystem::remove_all(directory);
  const Record r = made_record();
  const Runs runs(12, RunView(r));
  const std::string report = draw_plots(runs, "all", directory);
  EXPECT_TRUE(has(report, "timeline: no run has the figures for it\n")) << report;
  for (size_t run = 1; run <= runs.size(); ++run) {
    const std::string picture = directory + "/memory_map-" + std::to_string(run) + ".svg";
    EXPECT_TRUE(has(report, picture + ", .png, .dat\n")) << report;
    EXPECT_TRUE(std::filesystem::exists(picture)) << picture;
  }
  std::filesystem::remove_all(directory);
}

// A heat map has a value at a place, not a width.
TEST(Plots, DataOfHeatMaps) {
  Record r = made_record();
  r.steps.warmup_steps = 0;
  r.steps.skipped.clear();
  r.timing = {{"step", "s", "", {2, 3}, 1, 2, false}};
  r.provenance.hostnames = {"node", "node"};
  const Picture ranks = ranks_picture({RunView(r)});
  EXPECT_EQ(columns_of(ranks), "series x y value meaning ");
  EXPECT_EQ(row_of(ranks, 1), "node|1|node|3|rank 1 on node: 3.000 s, 100.0 % of the slowest|");
  std::vector<Record> records;
  for (const int64_t stage : {0, 1, 2})
    for (const int64_t batch : {1, 2}) {
      records.push_back(on(2, 100.0 * static_cast<double>(stage + batch)));
      set_key(records.back(), "parallel", "zero_stage", stage);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  records[5].outcome.status = "OOM";
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  const Picture sweep = sweep_picture(runs);
  EXPECT_EQ(row_of(sweep, 4).rfind("zero_stage 1|1|2|300|", 0), 0U) << row_of(sweep, 4);
  EXPECT_EQ(row_of(sweep, 5).rfind("zero_stage 2|2|2||", 0), 0U) << row_of(sweep, 5);
}

// Where a picture has several panels, each row names the one that it belongs to.
TEST(Plots, DataOfSeveralPanels) {
  const Record one = on(1, 250), four = on(4, 800);
  const Picture scaling = scaling_picture({RunView(four), RunView(one)});
  EXPECT_EQ(columns_of(scaling), "panel series x y low high meaning ");
  EXPECT_EQ(row_of(scaling, 0).rfind("Speed-up|ideal|1|1|", 0), 0U);
  EXPECT_EQ(data_of(scaling).rows.back()[0], "Efficiency (%)");
  const Picture messages = messages_picture({RunView(one)});
  ASSERT_EQ(messages.panels.size(), 2U);
  EXPECT_EQ(data_of(messages).rows.front()[0], messages.panels[0].x.label);
  EXPECT_EQ(columns_of(throughput_picture({RunView(four), RunView(one)})),
            "series x y low high meaning ");
}

// Files may hold any number; none stops a picture or appears in it as no number.
TEST(Plots, StrangeFigures) {
  for (const double value : {0.0, -1.0, 1e308, 1e-308, 1e17, double(INFINITY), double(NAN)}) {
    Record r = made_record();
    r.steps.loss = {value, 1.0, value};
    r.steps.time_s = {value, value, value, value};
    for (double* figure :
         {&r.summary.rate.tokens_per_s, &r.summary.rate.sec_per_it, &r.summary.rate.sec_per_it_min,
          &r.summary.rate.sec_per_it_max, &r.summary.peak_memory_bytes,
          &r.summary.device.memory_bytes, &r.summary.device.memory_used_bytes})
      *figure = value;
    for (RankSeries& series : r.timing)
      std::fill(series.values.begin(), series.values.end(), value);
    r.timing.push_back({"step", "s", "", {value, value, value, value}, 2, 2, false});
    for (CommEntry& entry : r.comm) entry.exposed_s = entry.time_s = {value, value};
    const int64_t bytes = value > 1e18 ? INT64_MAX : value < 0.0 ? -1 : 0;
    r.memory[0].bytes = {bytes, bytes};
    for (ArenaEntry& buffer : r.arena) buffer.offset_bytes = buffer.bytes = bytes;
    r.summary.timed_steps = r.summary.world_size = bytes;
    Record other = r;
    other.summary.world_size = 2;
    for (const Runs& runs : {Runs{RunView(r)}, Runs{RunView(r), RunView(other)}})
      for (const PlotKind& kind : plot_kinds)
        for (const Picture& picture : pictures_of(kind, runs)) {
          const std::string text = svg_of(picture);
          for (const char* none :
               {"=\"nan", "=\"inf", "=\"-nan", "=\"-inf", "Mnan", "Linf", "Vinf", "nan %"})
            EXPECT_FALSE(has(text, none)) << kind.name << " of " << value << ": " << none;
        }
  }
}

TEST(Plots, NothingToShow) {
  const Record empty;
  for (const PlotKind& kind : plot_kinds) {
    EXPECT_TRUE(kind.make({RunView(empty)}, {}).empty()) << kind.name;
    EXPECT_TRUE(kind.make({}, {}).empty()) << kind.name;
  }
}

}  // namespace
}  // namespace gptbench
