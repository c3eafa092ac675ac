// The timeline of a step: traces as they are read, and what is drawn of them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "made_record.h"
#include "plan/plan.h"
#include "post/plot.h"
#include "post/trace.h"

namespace gptbench {
namespace {

constexpr const char* trace_text =
    R"json({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (tensor 0, context 0, pipeline 0, data 0)"}},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 1 (tensor 0, context 0, pipeline 1, data 0)"}},
{"ph":"M","name":"thread_name","pid":0,"tid":5,"args":{"name":"send_forward"}},
{"ph":"M","name":"thread_name","pid":0,"tid":6,"args":{"name":"receive_forward"}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":10,"dur":30,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"norm","cat":"layernorm","pid":0,"tid":0,"ts":40,"dur":8,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"issue pipeline send","cat":"issue","pid":0,"tid":0,"ts":48,"dur":2,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"wait","cat":"wait","pid":0,"tid":0,"ts":50,"dur":20,"args":{"program":"forward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"linear","cat":"linear","pid":0,"tid":0,"ts":70,"dur":30,"args":{"program":"backward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"wait","cat":"wait","pid":0,"tid":0,"ts":100,"dur":0.01,"args":{"program":"backward","micro_batch":0,"bytes":0}},
{"ph":"X","name":"pipeline send","cat":"communication","pid":0,"tid":5,"ts":50,"dur":10,"args":{"program":"forward","micro_batch":0,"bytes":64}},
{"ph":"X","name":"pipeline receive","cat":"communication","pid":1,"tid":6,"ts":20,"dur":45,"args":{"program":"forward","micro_batch":0,"bytes":64}}
]})json";

TEST(Timeline, TimelineOfATrace) {
  const std::string directory = testing::TempDir() + "gptbench_plot_trace";
  std::ignore = std::system(("mkdir -p " + directory).c_str());
  std::ofstream(directory + "/trace.json") << trace_text;
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(picture.panels.size(), 1U);
  const Panel& panel = picture.panels[0];
  EXPECT_EQ(panel.y.ticks[0].second, "rank 0, stage 0, 68 % computing");
  std::string boxes;
  for (const Box& box : panel.boxes)
    boxes += box.name + " " + std::to_string(std::lround(box.left)) + "-" +
             std::to_string(std::lround(box.right)) + "\n";
  EXPECT_EQ(boxes,
            "forward 10-50\nwaiting 50-70\nmessage in flight 50-60\nbackward 70-100\n"
            "message in flight 20-65\n");
  EXPECT_EQ(panel.boxes[2].tip.rfind("pipeline send, micro-batch 1, 64 B", 0), 0U)
      << panel.boxes[2].tip;
  EXPECT_EQ(panel.boxes[2].inside, "");
  // A message is drawn below the passes of its rank.
  EXPECT_EQ(data_of(picture).rows.at(2)[0], "message in flight");
  EXPECT_EQ(data_of(picture).rows.at(2)[2], panel.y.ticks[0].second);
  ASSERT_EQ(panel.arrows.size(), 1U);
  EXPECT_EQ(panel.arrows[0].from_x, 50.0);
  EXPECT_EQ(panel.arrows[0].to_x, 65.0);
  // The ranks of a projected trace are called so.
  std::string projected = trace_text;
  for (size_t at = 0; (at = projected.find("\"rank ", at)) != std::string::npos; at += 10)
    projected.insert(at + 1, "projected ");
  std::ofstream(directory + "/trace.json") << projected;
  const Picture of_projection =
      timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  EXPECT_EQ(of_projection.panels.at(0).arrows.size(), 1U);
  EXPECT_EQ(of_projection.panels[0].y.ticks[0].second, "rank 0, stage 0, 68 % computing");
  // Interleaved schedules send from the last stage to the first, too.
  std::string around = trace_text;
  around.replace(around.rfind("\n]}"), 1, R"json(,
{"ph":"X","name":"pipeline send","cat":"communication","pid":1,"tid":5,"ts":70,"dur":5,"args":{"program":"forward","micro_batch":0,"bytes":64}},
{"ph":"X","name":"pipeline receive","cat":"communication","pid":0,"tid":6,"ts":60,"dur":20,"args":{"program":"forward","micro_batch":0,"bytes":64}}
)json");
  std::ofstream(directory + "/trace.json") << around;
  const Picture ring = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(ring.panels.at(0).arrows.size(), 2U);
  EXPECT_EQ(ring.panels[0].arrows[1].from_x, 70.0);
  EXPECT_EQ(ring.panels[0].arrows[1].to_x, 80.0);
  // A result that a later run moved aside has no trace.
  EXPECT_TRUE(timeline_picture({RunView(r, {}, nullptr, directory + "/result.1.h5")}).empty());
  // Nor has one of a run that traced no step, or ended before that step: another left the file.
  for (const int64_t step : {int64_t{0}, int64_t{5}}) {
    Record other = r;
    set_key(other, "output", "trace_step", step);
    EXPECT_TRUE(timeline_picture({RunView(other, {}, nullptr, directory + "/result.h5")}).empty());
  }
}

// Every program of a micro-batch is a pass, that of the last one included; numbers are of passes.
TEST(Timeline, ProgramsOfATimeline) {
  const std::string directory = testing::TempDir() + "gptbench_plot_programs";
  std::filesystem::create_directories(directory);
  std::string text =
      R"json({"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (tensor 0, context 0, pipeline 0, data 0)"}},
{"ph":"M","name":"process_labels","pid":0,"args":{"labels":"3 of 128 micro-batches"}})json";
  int begin = 0;
  for (int kind = 0; kind <= static_cast<int>(ProgramKind::end_step); ++kind) {
    const std::string name = name_of(static_cast<ProgramKind>(kind));
    const bool is_pass = name.find("step") == std::string::npos;
    text += printed(
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"linear\",\"pid\":0,\"tid\":0,\"ts\":%d,"
        "\"dur\":100,\"args\":{\"program\":\"%s\",\"micro_batch\":%d}}",
        name.c_str(), begin, name.c_str(), is_pass ? 2 : -1);
    begin += 100;
  }
  std::ofstream(directory + "/trace.json") << text << "\n]}";
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  std::string boxes;
  for (const Box& box : picture.panels.at(0).boxes) boxes += box.name + " " + box.inside + "\n";
  EXPECT_EQ(picture.title, "Timeline of one step: 3 of 128 micro-batches");
  EXPECT_EQ(boxes,
            "begin and end of the step \nforward F3\nbackward B3\nforward F3\nbackward B3\n"
            "backward B3\nweight gradients W3\nweight gradients W3\nbegin and end of the step \n");
  std::filesystem::remove_all(directory);
}

// Forwards from a stage to the next, backwards to the one before; a ring of three has both.
TEST(Timeline, ArrowsBetweenThreeStages) {
  const std::string directory = testing::TempDir() + "gptbench_plot_ring";
  std::filesystem::create_directories(directory);
  std::string text = "{\"traceEvents\":[";
  const auto span = [&](int rank, const char* lane, int thread, int begin) {
    const std::string pid = "\"pid\":" + std::to_string(rank), number = std::to_string(thread);
    text += "\n{\"ph\":\"M\",\"name\":\"thread_name\"," + pid + ",\"tid\":" + number +
            ",\"args\":{\"name\":\"" + lane +
            "\"}},\n{\"ph\":\"X\",\"name\":\"message\",\"cat\":\"communication\"," + pid +
            ",\"tid\":" + number + ",\"ts\":" + std::to_string(begin) +
            ",\"dur\":5,\"args\":{\"program\":\"forward\",\"micro_batch\":0,\"bytes\":64}},";
  };
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    text += "\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + number +
            ",\"args\":{\"name\":\"rank " + number + " (tensor 0, context 0, pipeline " + number +
            ", data 0)\"}},";
  }
  span(0, "send_forward", 1, 10);
  span(1, "receive_forward", 2, 11);
  span(2, "send_backward", 3, 30);
  span(1, "receive_backward", 4, 31);
  text.back() = '\n';
  std::ofstream(directory + "/trace.json") << text << "]}";
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(picture.panels.size(), 1U);
  ASSERT_EQ(picture.panels[0].arrows.size(), 2U);
  EXPECT_EQ(picture.panels[0].arrows[0].from_x, 10.0);
  EXPECT_EQ(picture.panels[0].arrows[0].to_x, 16.0);
  EXPECT_EQ(picture.panels[0].arrows[1].from_x, 30.0);
  EXPECT_EQ(picture.panels[0].arrows[1].to_x, 36.0);
  std::filesystem::remove_all(directory);
}

// Five stages of eight ranks: 32 rows hold one of each, and the first 27 others.
TEST(Timeline, ATimelineHasARowForEachStage) {
  const std::string directory = testing::TempDir() + "gptbench_plot_stages";
  std::filesystem::create_directories(directory);
  std::string text = "{\"traceEvents\":[";
  for (int rank = 0; rank < 40; ++rank)
    text += printed(
        "\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d "
        "(tensor %d, context 0, pipeline %d, data 0)\"}},\n{\"ph\":\"X\",\"name\":\"linear\","
        "\"cat\":\"linear\",\"pid\":%d,\"tid\":0,\"ts\":0,\"dur\":100,\"args\":{\"program\":"
        "\"forward\",\"micro_batch\":0}},",
        rank, rank, rank % 8, rank / 8, rank);
  text.back() = '\n';
  std::ofstream(directory + "/trace.json") << text << "]}";
  const Record r = made_record();
  const Picture picture = timeline_picture({RunView(r, {}, nullptr, directory + "/result.h5")});
  ASSERT_EQ(picture.panels.size(), 1U);
  const auto& ticks = picture.panels[0].y.ticks;
  ASSERT_EQ(ticks.size(), 32U);
  EXPECT_EQ(ticks[31].second, "rank 32, stage 4, 100 % computing");
  EXPECT_EQ(ticks[30].second, "rank 30, stage 3, 100 % computing");
  EXPECT_EQ(picture.notes.back(), "32 of 40 ranks in the trace, one of each stage first.");
  std::filesystem::remove_all(directory);
}

TEST(Timeline, TracesThatAreNoneAreEmpty) {
  for (const char* text : {"", "{", "\n\n", "{\"ph\":\"X\",\"pid\":0,\"ts\":1e400,\"dur\":-1}",
                           "{\"ph\":\"X\",\"pid\":1e99}"})
    EXPECT_TRUE(parse_trace(text).spans.empty()) << text;
}

TEST(Timeline, TracesOfLargeMessages) {
  const TraceFile trace = parse_trace(
      "{\"ph\":\"X\",\"name\":\"all_reduce\",\"pid\":0,\"tid\":1,\"ts\":1,\"dur\":2,"
      "\"args\":{\"bytes\":1380000000}}\n");
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.spans[0].bytes, 1'380'000'000);
}

}  // namespace
}  // namespace gptbench
