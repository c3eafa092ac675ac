// The heat map of a sweep over two or three keys.
#include <gtest/gtest.h>

#include "has.h"
#include "made_record.h"
#include "post/plot.h"
#include "read_picture.h"

namespace gptbench {
namespace {

TEST(SweepPictures, SweepOverTwoKeys) {
  std::vector<Record> records;
  for (const int64_t stage : {0, 3})
    for (const int64_t batch : {1, 2}) {
      records.push_back(on(2, 100.0 * static_cast<double>(1 + batch + stage)));
      set_key(records.back(), "parallel", "zero_stage", stage);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  records[3].outcome.status = "OOM";
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  const Picture picture = sweep_picture(runs);
  ASSERT_EQ(picture.panels.size(), 1U);
  ASSERT_EQ(picture.panels[0].boxes.size(), 4U);
  EXPECT_EQ(picture.panels[0].boxes[0].inside, "200.0");
  EXPECT_EQ(picture.panels[0].boxes[3].inside, "OOM");
  EXPECT_EQ(picture.panels[0].boxes[3].style, hatched);
  // A cell whose runs ended differently has the figure of one, and is marked.
  Record stopped = records[0];
  stopped.outcome.status = "TIMEOUT";
  runs.emplace_back(stopped);
  const Picture both = sweep_picture(runs);
  ASSERT_EQ(both.panels[0].boxes.size(), 5U);
  EXPECT_EQ(both.panels[0].boxes[0].inside, "200.0");
  EXPECT_EQ(both.panels[0].boxes[1].style, hatched);
  EXPECT_EQ(both.panels[0].boxes[1].left, both.panels[0].boxes[0].left);
  EXPECT_TRUE(has(both.notes.back(), "Hatched"));
}

// Names and folders of runs are no keys of a sweep; a ninth panel is one too many.
TEST(SweepPictures, SweepOverThreeKeys) {
  std::vector<Record> records;
  for (int64_t heads = 1; heads <= 9; ++heads)
    for (const int64_t stage : {0, 3})
      for (int64_t batch = 1; batch <= 9; ++batch) {
        records.push_back(on(2, 100.0));
        set_key(records.back(), "model", "num_attention_heads", heads);
        set_key(records.back(), "parallel", "zero_stage", stage);
        set_key(records.back(), "batch", "micro_batch_size", batch);
        set_key(records.back(), "run", "name", "row " + std::to_string(records.size()));
        set_key(records.back(), "output", "directory", "row " + std::to_string(records.size()));
      }
  const auto panels_of = [&](int64_t max_heads, int64_t max_batch) {
    Runs runs;
    for (const Record& record : records) {
      const RunView run(record);
      if (run.deck().integer("model", "num_attention_heads", 0) <= max_heads &&
          run.deck().integer("batch", "micro_batch_size", 0) <= max_batch)
        runs.push_back(run);
    }
    return sweep_picture(runs).panels.size();
  };
  EXPECT_EQ(panels_of(9, 9), 2U);
  EXPECT_EQ(panels_of(3, 2), 2U);
  std::vector<Record> deep;
  for (int64_t layers = 1; layers <= 9; ++layers)
    for (const Record& record : records) {
      deep.push_back(record);
      set_key(deep.back(), "parallel", "zero_stage", layers);
    }
  Runs nine;
  for (const Record& record : deep) nine.emplace_back(record);
  EXPECT_TRUE(sweep_picture(nine).empty());
  EXPECT_TRUE(has(sweep_picture(nine).notes.front(), "zero_stage (9 values)"));
}

// A limit of memory is a key of the sweep where no other key tells the runs apart.
TEST(SweepPictures, SweepOverLimitsOfMemory) {
  std::vector<Record> records;
  for (const double limit_gib : {16.0, 32.0})
    for (const int64_t batch : {1, 2}) {
      records.push_back(on(2, 100.0));
      set_key(records.back(), "memory", "device_memory_gib", limit_gib);
      set_key(records.back(), "batch", "micro_batch_size", batch);
    }
  Runs runs;
  for (const Record& record : records) runs.emplace_back(record);
  const Picture picture = sweep_picture(runs);
  ASSERT_EQ(picture.panels.size(), 1U);
  EXPECT_EQ(picture.panels[0].boxes.size(), 4U);
  // Where it follows from another one, it is none.
  for (size_t r = 0; r < records.size(); ++r)
    set_key(records[r], "memory", "device_memory_gib", r % 2 == 0 ? 16.0 : 32.0);
  EXPECT_TRUE(sweep_picture(runs).empty());
}

}  // namespace
}  // namespace gptbench
