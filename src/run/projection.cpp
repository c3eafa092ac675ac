#include "run/projection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "deck/validate.h"
#include "io/result_file.h"
#include "plan/tasks.h"
#include "project/clock.h"
#include "record/flops.h"
#include "record/regions.h"
#include "record/steps.h"
#include "run/assemble_record.h"
#include "run/auto_layout.h"
#include "run/largest_batch.h"
#include "run/trace_file.h"

namespace gptbench {
namespace {

// The times of one step, of the stage that computes longest, as a run has them: all waiting is
// communication.
std::vector<RankSeries> times_of(const StepTime& time) {
  std::vector<RankSeries> times;
  const auto add = [&](const std::string& name, const std::string& what, double seconds) {
    RankSeries& series = times.emplace_back();
    series.name = name;
    series.unit = "s";
    series.description = what + ", projected, of the stage that computes longest, [step, rank]";
    series.values = {seconds};
    series.steps = series.ranks = 1;
  };
  add("step", "whole step", time.sec_per_it);
  for (int r = 0; r < num_regions; ++r) {
    const double seconds = time.region_s[static_cast<size_t>(r)];
    const std::string name = name_of(static_cast<Region>(r));
    if (seconds > 0.0) add(region_prefix + name, name, seconds);
  }
  if (time.overhead_s > 0.0)
    add(region_prefix + std::string("overhead"), "added by the software", time.overhead_s);
  add("communication", "waiting for messages, stages and the slowest rank",
      time.exposed_s + time.bubble_s + time.straggler_s);
  add("bubble", "waiting for another stage, part of communication", time.bubble_s);
  add("straggler", "slowest of all ranks over their mean, part of communication", time.straggler_s);
  return times;
}

// The messages of rank 0. Which of them computing waits for is known of pipeline messages alone:
// the bubble.
std::vector<CommEntry> messages_of(const ProjectionReport& report) {
  const Plan& plan = report.work.plan();
  RankWork rank;
  rank.plan = plan;
  std::vector<double> calls;
  for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t times) {
    const Work work = work_of(plan, plan.ops[static_cast<size_t>(index)], rows);
    if (work.kind != Work::Kind::message) return;
    rank.works.push_back(work);
    calls.push_back(static_cast<double>(times));
  });
  const std::vector<double> seconds = seconds_of(rank, report.machine, report.software);
  std::vector<CommEntry> messages;
  for (const CommTotal& total : plan.costs.comm) {
    CommEntry& entry = messages.emplace_back();
    entry.axis = name_of(total.axis);
    entry.op = spec_of(total.kind).name;
    entry.bytes = {total.bytes};
    entry.count = {total.count};
    double time_s = 0.0;
    for (size_t i = 0; i < calls.size(); ++i)
      if (rank.works[i].axis == total.axis && rank.works[i].op == total.kind)
        time_s += calls[i] * seconds[i];
    entry.least_s = entry.time_s = {time_s};
    if (total.axis == Axis::pipeline) entry.exposed_s = {report.projection.time.bubble_s};
  }
  return messages;
}

// Memory of the device with the highest need: the classes of its plan, and what the software adds.
std::vector<MemoryEntry> memory_of(const ProjectionReport& report) {
  const MemoryNeed& need = report.projection;
  std::vector<MemoryEntry> memory;
  const auto add = [&](const std::string& name, const std::string& what, int64_t bytes) {
    memory.push_back(
        {name, what + ", projected, of the device with the highest need", {bytes}, false});
  };
  const ClassBytes& planned = report.work.figures[need.largest].class_bytes;
  for (int c = 0; c < num_memory_classes; ++c)
    if (const auto memory_class = static_cast<MemoryClass>(c); memory_class != MemoryClass::file)
      add(name_of(memory_class), "planned for this class", planned[static_cast<size_t>(c)]);
  const auto peak = static_cast<int64_t>(need.memory_bytes);
  if (const int64_t added = peak - static_cast<int64_t>(need.planned_bytes); added > 0)
    add("added_by_software", "stored scores, logits and fragments beside the plan", added);
  add("peak", "all that it holds", peak);
  return memory;
}

ProjectionFacts facts_of(const ProjectionReport& report) {
  const Projection& projection = report.projection;
  const double step_s = projection.time.sec_per_it;
  ProjectionFacts facts;
  facts.machine = report.machine.name;
  facts.software = report.software.name;
  facts.fuses = report.software.fuses;
  facts.sec_per_it_low = projection.low_s;
  facts.sec_per_it_high = projection.high_s;
  facts.tokens_per_s_low = projection.tokens_per_s * step_s / projection.high_s;
  facts.tokens_per_s_high = projection.tokens_per_s * step_s / projection.low_s;
  facts.mfu_low = projection.mfu * step_s / projection.high_s;
  facts.mfu_high = projection.mfu * step_s / projection.low_s;
  return facts;
}

// A deck that asks for its largest batch, with the largest that fits in the projected memory; and
// what is to be said of it. The first candidate where none fits.
std::pair<Deck, std::vector<std::string>> with_largest_batch(Deck deck, int64_t ranks,
                                                             const Machine& machine,
                                                             const Software& software) {
  const BatchCandidates candidates(deck, resolve(deck, ranks));
  if (!candidates.is_requested()) return {std::move(deck), {}};
  Deck trial = deck;
  const int64_t largest = largest_candidate(candidates, [&](int64_t candidate) {
    trial.config.batch = candidates.at(candidate).batch;
    const std::vector<Plan> stages = unlike_stages(trial, ranks, machine, software);
    std::vector<StageFigures> figures;
    for (const Plan& stage : stages) figures.push_back(figures_of(stage));
    return memory_need(stages.front(), figures, machine, software).fits();
  });
  const int64_t chosen = std::max<int64_t>(1, largest);
  deck.config.batch = candidates.at(chosen).batch;
  return {std::move(deck),
          {largest > 0 ? "the largest batch that fits in the projected memory (run.find_largest)"
                       : "the smallest batch of run.find_largest, which does not fit"}};
}

}  // namespace

Record projected_record(const Deck& deck, const ProjectionReport& report, const std::string& argv) {
  const Machine& machine = report.machine;
  const Projection& projection = report.projection;
  const Plan& plan = report.work.plan();
  const auto per_node = static_cast<int64_t>(machine.ranks_per_node);
  Record record = planned_record(deck, plan, report.work.figures,
                                 ceil_div(plan.grid.size(), per_node), per_node, argv);
  record.machine = "projected for " + machine.name;
  record.outcome.verdict = "PROJECTED";
  record.outcome.status = "OK";
  record.outcome.exit_status = 0;
  record.outcome.reason = "projected for machine " + machine.name + ", software " +
                          report.software.name + "; nothing ran";
  record.provenance.slurm = record.provenance.environment = "";
  record.steps.warmup_steps = 0;
  record.steps.time_s = {projection.time.sec_per_it};
  record.steps.tokens = {record.summary.tokens_per_step};
  summarise_steps(record, plan.config.batch.global_batch_size);
  Summary& s = record.summary;
  s.rules = {};
  s.sensors_note = "projected";
  s.device.name = machine.data().name;
  s.device.clock_ghz = machine.clock_ghz;
  s.peak_memory_bytes = s.device.memory_used_bytes = projection.memory_bytes;
  s.device.memory_bytes = projection.limit_bytes;
  const bool by_deck = plan.config.output.peak_tflops > 0.0;
  set_peak(s, 1e-12 * projection.peak_flops, by_deck ? peak_source::deck : peak_source::profile);
  s.peak.note = projection.peak_note;
  record.timing = times_of(projection.time);
  record.comm = messages_of(report);
  record.memory = memory_of(report);
  record.projection = facts_of(report);
  return record;
}

std::string run_projection(const CommandLine& line, const std::string& argv) {
  const Machine machine = read_machine(line.machine);
  const Software software =
      line.software.empty() ? software_of_profile(line.machine) : read_software(line.software);
  const Deck given = read_deck(line.deck, line.overrides);
  const ChosenLayout chosen =
      with_best_layout(given, line.ranks, machine, software, max_auto_layouts);
  auto [deck, remarks] = with_largest_batch(chosen.deck, line.ranks, machine, software);
  if (!chosen.cut.empty()) remarks.push_back("run.layout = 'auto' " + chosen.cut);
  const StepWork work = step_work(deck, line.ranks, machine, software);
  const Projection projection = project(work, machine, software);
  ProjectionReport report = {work, projection, machine, software, line.tokens};
  report.remarks = std::move(remarks);
  if (const std::string remark = library_remark(deck, machine); !remark.empty())
    report.remarks.push_back(remark);
  if (!line.result_directory.empty()) {
    write_result(line.result_directory, projected_record(deck, report, argv));
    write_trace(line.result_directory, work, step_timeline(work, machine, software));
  }
  return line.json ? projection_json(report) + "\n" : projection_text(report);
}

}  // namespace gptbench
