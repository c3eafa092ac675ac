#include "run/trace_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "comm/agree.h"
#include "io/file_bytes.h"
#include "project/work.h"

namespace gptbench {
namespace {

// Name in a report: messages with their axis.
std::string title(const Op& op) {
  const std::string name = spec_of(op.kind).name;
  return is_message(op.kind) ? std::string(name_of(op.axis)) + " " + name : name;
}

// Names of a rank and its lanes. `before`: "" of a measured one.
std::string heading_of(const Plan& plan, const std::string& before) {
  const long long rank = plan.rank;
  std::string lines = printed(
      ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%lld,\"args\":{\"name\":\"%srank %lld "
      "(tensor %lld, context %lld, pipeline %lld, data %lld)\"}}",
      rank, before.c_str(), rank, static_cast<long long>(plan.at.tensor),
      static_cast<long long>(plan.at.context), static_cast<long long>(plan.at.pipeline),
      static_cast<long long>(plan.at.data));
  for (int q = 0; q < num_queues; ++q)
    lines += printed(
        ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%lld,\"tid\":%d,\"args\":"
        "{\"name\":\"%s\"}}",
        rank, q, q == 0 ? "host" : name_of(static_cast<QueueId>(q)));
  return lines;
}

// One line of the file; times in microseconds. The line of a kernel also has its name with sizes,
// its FLOPs and the bytes of its operands (project/work.h).
struct Line {
  std::string name, category;
  int lane = 0;
  double begin_us = 0.0, end_us = 0.0;
  int32_t op = 0, micro_batch = 0;
  ProgramKind program = ProgramKind::begin_step;
  int64_t bytes = 0;
  double issued_us = 0.0, pending_us = 0.0;
  std::string work = "";
  double flops = 0.0, moved = 0.0;
};

bool moves_away(const Work& work) {
  return work.kind == Work::Kind::message || work.kind == Work::Kind::transfer;
}

// Waits compute nothing, nor do operations on the rows of an empty micro-batch.
void set_work(Line& line, const Plan& plan, const Work& work) {
  const Op& op = plan.ops[static_cast<size_t>(line.op)];
  const bool is_empty = op.flops_per_row > 0.0 && work.flops == 0.0;
  if (moves_away(work)) {
    line.bytes = static_cast<int64_t>(work.bytes);
  } else if (work.kind != Work::Kind::none && !is_empty && line.category != "wait") {
    line.work = name_of(work);
    line.flops = done_flops(plan, work);
    line.moved = work.bytes;
  }
}

std::string text_of(const Plan& plan, const Line& line) {
  const std::string work = line.work.empty()
                               ? ""
                               : printed(",\"work\":\"%s\",\"flops\":%.0f,\"moved\":%.0f",
                                         line.work.c_str(), line.flops, line.moved);
  return printed(
      ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%lld,\"tid\":%d,\"ts\":%.3f,"
      "\"dur\":%.3f,\"args\":{\"program\":\"%s\",\"micro_batch\":%d,\"layer\":%d,"
      "\"operation\":%d,\"bytes\":%lld,\"issued_us\":%.3f,\"pending_us\":%.3f%s}}",
      line.name.c_str(), line.category.c_str(), static_cast<long long>(plan.rank), line.lane,
      line.begin_us, line.end_us - line.begin_us, name_of(line.program), line.micro_batch,
      plan.ops[static_cast<size_t>(line.op)].layer, line.op, static_cast<long long>(line.bytes),
      line.issued_us, line.pending_us, work.c_str());
}

std::string lines_of(const Plan& plan, const Trace& trace) {
  std::string lines = heading_of(plan, "");
  const auto us = [&](double time_s) { return 1e6 * (time_s - trace.origin_s()); };
  const auto span = [&](const std::string& name, const char* category, int lane, double begin_s,
                        double end_s, const TraceEvent& event) {
    const Op& op = plan.ops[static_cast<size_t>(event.op)];
    const Task& task = event.task;
    Line line{name, category, lane, us(begin_s), us(end_s)};
    line.op = event.op;
    line.micro_batch = task.micro_batch;
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    line.program = program.kind;
    const int64_t held = task.sequences.count * plan.T_local();
    set_work(line, plan, work_of(plan, op, program.rows_of(event.op, held, event.first_row)));
    line.issued_us = us(event.begin_s);
    line.pending_us = us(event.message.pending_s < 0.0 ? event.end_s : event.message.pending_s);
    lines += text_of(plan, line);
  };
  for (const TraceEvent& event : trace.events()) {
    const Op& op = plan.ops[static_cast<size_t>(event.op)];
    const bool asynchronous = op.queue != QueueId::compute && op.queue != QueueId::host_kernels;
    span((asynchronous ? "issue " : "") + title(op), asynchronous ? "issue" : name_of(op.region), 0,
         event.begin_s, event.end_s, event);
    if (event.message.completed_s >= 0.0)
      span(title(op), name_of(op.region), static_cast<int>(op.queue), event.message.started_s,
           event.message.completed_s, event);
  }
  for (const TraceWait& wait : trace.waits()) {
    const TraceEvent& event = trace.events()[static_cast<size_t>(wait.event)];
    span("wait for " + title(plan.ops[static_cast<size_t>(event.op)]), "wait", 0, wait.begin_s,
         wait.end_s, event);
  }
  return lines;
}

std::string lines_of(const RankWork& rank, const LaneTime& time) {
  const Plan& plan = rank.plan;
  std::string lines = heading_of(plan, "projected ");
  std::vector<ProgramKind> programs(plan.ops.size());
  for (const Program& program : plan.programs)
    for (int32_t i = program.first; i < program.last; ++i)
      programs[static_cast<size_t>(i)] = program.kind;
  for (const Span& span : time.spans) {
    const Issue& issue = rank.issues[static_cast<size_t>(span.issue)];
    const Op& op = plan.ops[static_cast<size_t>(issue.op)];
    Line line{title(op), name_of(op.region), static_cast<int>(op.queue), 1e6 * span.begin_s,
              1e6 * span.end_s};
    line.op = issue.op;
    line.micro_batch = issue.micro_batch;
    line.program = programs[static_cast<size_t>(issue.op)];
    set_work(line, plan, rank.works[static_cast<size_t>(issue.work)]);
    line.issued_us = line.begin_us;
    line.pending_us = line.end_us;
    if (span.lost_s > 0.0) {
      Line wait = line;
      wait.name = "wait for messages in flight";
      wait.category = "wait";
      wait.work.clear();
      wait.end_us = line.begin_us = 1e6 * (span.begin_s + span.lost_s);
      lines += text_of(plan, wait);
    }
    lines += text_of(plan, line);
  }
  return lines;
}

void write_file_of(const std::string& directory, const std::vector<std::string>& parts) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (const std::string& part : parts)
    if (!part.empty()) text += part.substr(text.back() == '\n' ? 2 : 0);  // no comma at first
  create_directories(directory);
  write_file(directory + "/trace.json", text + "\n]}\n");
}

}  // namespace

std::set<int64_t> traced_ranks(const Grid& grid) {
  const auto most = std::min(max_traced_ranks, static_cast<size_t>(grid.size()));
  std::set<int64_t> ranks;
  Coordinates at;
  for (; at.pipeline < grid.pipeline && ranks.size() < most; ++at.pipeline)
    ranks.insert(grid.rank_of(at));
  for (int64_t rank = 0; ranks.size() < most; ++rank) ranks.insert(rank);
  return ranks;
}

void write_trace(MpiWorld& world, const Plan& plan, const Trace& trace) {
  const bool is_traced = traced_ranks(plan.grid).count(plan.rank) > 0;
  const std::vector<std::string> parts =
      world.gather(is_traced ? lines_of(plan, trace) : std::string());
  agreed(world, [&] {
    if (world.rank() != 0) return;
    try {
      write_file_of(plan.config.output.directory, parts);
    } catch (const Error& error) {
      throw Error(Exit::io, std::string(error.what()) +
                                "; look at output.directory, or use output.trace_step = 0");
    }
  });
}

void write_trace(const std::string& directory, const StepWork& work, const StepTimeline& timeline) {
  std::vector<std::string> parts;
  for (size_t stage = 0; stage < timeline.lanes.size(); ++stage) {
    const RankWork& rank = *timeline.lanes[stage].work;
    parts.push_back(lines_of(rank, timeline.times[stage]));
    if (work.batches.fewer > 0)
      parts.back() += printed(
          ",\n{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%lld,\"args\":{\"labels\":"
          "\"%lld of %lld micro-batches\"}}",
          static_cast<long long>(rank.plan.rank), static_cast<long long>(work.batches.walked),
          static_cast<long long>(rank.plan.micro_batches.size()));
  }
  write_file_of(directory, parts);
}

}  // namespace gptbench
