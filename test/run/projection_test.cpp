// A projection as the record of a run, whose figures mean what they mean in a measured one.
#include "run/projection.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "io/file_bytes.h"
#include "run/trace_file.h"

namespace gptbench {
namespace {

Record projected(const std::vector<std::string>& keys, const std::string& software) {
  const Deck deck = parse_deck("a.in", "&model preset = 'gpt2-124m' /", keys);
  const Machine machine = read_machine("h100");
  const Software known = read_software(software);
  const StepWork work = step_work(deck, 8, machine, known);
  return projected_record(deck, {work, project(work, machine, known), machine, known, 0.0}, "");
}

const CommEntry& messages(const Record& record, const std::string& axis, const std::string& op) {
  for (const CommEntry& entry : record.comm)
    if (entry.axis == axis && entry.op == op) return entry;
  throw std::runtime_error("no messages " + axis + " " + op);
}

double time_of(const Record& record, const std::string& name) {
  for (const RankSeries& series : record.timing)
    if (series.name == name) return series.values.at(0);
  return 0.0;
}

// Regions and communication are the step, the part that the software adds included.
TEST(ProjectedRecord, RegionsAndCommunicationAreTheStep) {
  for (const char* const software : {"fsdp", "gptbench"}) {
    const Record r = projected({"batch.global_batch_size=64"}, software);
    double sum = time_of(r, "communication");
    for (const RankSeries& series : r.timing)
      if (series.name.rfind("region_", 0) == 0) sum += series.values.at(0);
    EXPECT_NEAR(sum, r.summary.rate.sec_per_it, 1e-9) << software;
    EXPECT_EQ(time_of(r, "region_overhead") > 0.0, software == std::string("fsdp"));
    EXPECT_EQ(r.projection.fuses, software == std::string("fsdp") ? 0.0 : 1.0);
  }
}

// The band is of steps that a machine would take: the record has one step.
TEST(ProjectedRecord, TheBandIsNoRangeOfSteps) {
  const Record r = projected({"batch.global_batch_size=64"}, "gptbench");
  EXPECT_EQ(r.summary.rate.sec_per_it_min, r.summary.rate.sec_per_it);
  EXPECT_EQ(r.summary.rate.sec_per_it_max, r.summary.rate.sec_per_it);
  EXPECT_LT(r.projection.sec_per_it_low, r.summary.rate.sec_per_it);
  EXPECT_GT(r.projection.sec_per_it_high, r.summary.rate.sec_per_it);
}

// The classes of the device with the highest need and what the software adds are its peak. Of two
// stages the first holds the activations of more micro-batches.
TEST(ProjectedRecord, MemoryByClassIsThePeak) {
  for (const char* const software : {"megatron", "gptbench"}) {
    const Record r =
        projected({"batch.global_batch_size=16", "parallel.pipeline_parallel=2"}, software);
    int64_t sum = 0, peak = 0, added = 0;
    for (const MemoryEntry& entry : r.memory) {
      (entry.name == "peak" ? peak : sum) += entry.bytes.at(0);
      if (entry.name == "added_by_software") added = entry.bytes.at(0);
    }
    EXPECT_EQ(sum, peak) << software;
    EXPECT_EQ(static_cast<double>(peak), r.summary.peak_memory_bytes);
    EXPECT_EQ(added > 0, software == std::string("megatron"));
  }
}

TEST(ProjectedRecord, MessagesHaveTimes) {
  const auto of_batch = [](int64_t sequences) {
    return projected({"batch.global_batch_size=" + std::to_string(sequences),
                      "parallel.pipeline_parallel=2", "parallel.tensor_parallel=2"},
                     "gptbench");
  };
  const Record few = of_batch(16), many = of_batch(64);
  for (const CommEntry& entry : many.comm)
    EXPECT_EQ(entry.time_s.at(0) > 0.0, entry.count.at(0) > 0) << entry.axis << " " << entry.op;
  // Four times the micro-batches: all of them count, not only those that are walked.
  EXPECT_NEAR(messages(many, "tensor", "all_reduce").time_s.at(0) /
                  messages(few, "tensor", "all_reduce").time_s.at(0),
              4.0, 1e-9);
  EXPECT_EQ(messages(many, "pipeline", "send").exposed_s.at(0), time_of(many, "bubble"));
  EXPECT_GT(time_of(many, "bubble"), 0.0);
  EXPECT_TRUE(messages(many, "tensor", "all_reduce").exposed_s.empty());  // not known
}

std::string trace_of(int64_t sequences) {
  const Deck deck = parse_deck("a.in", "&model preset = 'gpt2-124m' /",
                               {"batch.global_batch_size=" + std::to_string(sequences)});
  const Machine machine = read_machine("h100");
  const Software software = read_software("gptbench");
  const StepWork work = step_work(deck, 8, machine, software);
  const std::string directory = testing::TempDir() + "gptbench_projected_trace";
  write_trace(directory, work, step_timeline(work, machine, software));
  const Bytes bytes = read_bytes(directory + "/trace.json", 1 << 30);
  std::filesystem::remove_all(directory);
  return {bytes.begin(), bytes.end()};
}

// A trace that leaves micro-batches out says so.
TEST(ProjectedTrace, SaysHowManyMicroBatchesItHas) {
  EXPECT_NE(trace_of(1024).find("{\"labels\":\"3 of 128 micro-batches\"}"), std::string::npos);
  EXPECT_EQ(trace_of(24).find("labels"), std::string::npos);
}

// What computing loses to messages in flight is a wait: the other spans of a rank's first lane are
// the time that it computes.
TEST(ProjectedTrace, ComputingIsWhatTheStepComputes) {
  const Deck deck = parse_deck("a.in", "&model preset = 'gpt2-124m' /",
                               {"batch.global_batch_size=8", "parallel.data_parallel=8"});
  const Machine machine = read_machine("h100");
  Software software = read_software("gptbench");
  software.overlap_cost = 0.5;
  const StepWork work = step_work(deck, 8, machine, software);
  const StepTimeline timeline = step_timeline(work, machine, software);
  const std::string directory = testing::TempDir() + "gptbench_projected_waits";
  write_trace(directory, work, timeline);
  const Bytes bytes = read_bytes(directory + "/trace.json", 1 << 30);
  std::filesystem::remove_all(directory);
  double computing_us = 0.0, lost_us = 0.0;
  for (const std::string& line : split(std::string(bytes.begin(), bytes.end()), '\n')) {
    const size_t times = line.find("\"tid\":0,\"ts\":");
    double begin_us = 0.0, duration_us = 0.0;
    if (times == std::string::npos ||
        std::sscanf(line.c_str() + times, "\"tid\":0,\"ts\":%lf,\"dur\":%lf", &begin_us,
                    &duration_us) != 2)
      continue;
    (line.find("\"cat\":\"wait\"") == std::string::npos ? computing_us : lost_us) += duration_us;
  }
  EXPECT_GT(lost_us, 0.01 * computing_us);
  EXPECT_NEAR(computing_us, 1e6 * timeline.times[0].computing_s, 1.0);  // printed to 1 ns
}

}  // namespace
}  // namespace gptbench
