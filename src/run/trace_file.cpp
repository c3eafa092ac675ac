#include "run/trace_file.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/agree.h"
#include "io/file_bytes.h"

namespace gptbench {
namespace {

constexpr int64_t most_ranks = 64;

// Name in a report: messages with their axis.
std::string title(const Op& op) {
  const std::string name = spec_of(op.kind).name;
  return is_message(op.kind) ? std::string(name_of(op.axis)) + " " + name : name;
}

std::string lines_of(const Plan& plan, const Trace& trace) {
  std::string lines;
  const long long rank = plan.rank;
  lines += printed(
      ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%lld,\"args\":{\"name\":\"rank %lld "
      "(tensor %lld, context %lld, pipeline %lld, data %lld)\"}}",
      rank, rank, static_cast<long long>(plan.at.tensor), static_cast<long long>(plan.at.context),
      static_cast<long long>(plan.at.pipeline), static_cast<long long>(plan.at.data));
  for (int q = 0; q < num_queues; ++q)
    lines += printed(
        ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%lld,\"tid\":%d,\"args\":"
        "{\"name\":\"%s\"}}",
        rank, q, q == 0 ? "host" : name_of(static_cast<QueueId>(q)));
  const auto us = [&](double time_s) { return 1e6 * (time_s - trace.origin_s()); };
  const auto span = [&](const std::string& name, const char* category, int lane, double begin_s,
                        double end_s, const TraceEvent& event) {
    const Op& op = plan.ops[static_cast<size_t>(event.op)];
    const Task& task = event.task;
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    const int64_t rows = task.sequences.count * plan.shape.T / plan.grid.context;
    lines += printed(
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%lld,\"tid\":%d,\"ts\":%.3f,"
        "\"dur\":%.3f,\"args\":{\"program\":\"%s\",\"micro_batch\":%d,\"layer\":%d,"
        "\"operation\":%d,\"bytes\":%lld,\"issued_us\":%.3f,\"pending_us\":%.3f}}",
        name.c_str(), category, rank, lane, us(begin_s), 1e6 * (end_s - begin_s),
        name_of(program.kind), task.micro_batch, op.layer, event.op,
        static_cast<long long>(is_message(op.kind) ? payload_bytes(op, rows) : 0),
        us(event.begin_s),
        event.message.pending_s < 0.0 ? us(event.end_s) : us(event.message.pending_s));
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

}  // namespace

void write_trace(MpiWorld& world, const Plan& plan, const Trace& trace) {
  const std::vector<std::string> parts =
      world.gather(plan.rank < most_ranks ? lines_of(plan, trace) : std::string());
  agreed(world, [&] {
    if (world.rank() != 0) return;
    std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    for (const std::string& part : parts)
      if (!part.empty()) text += part.substr(text.back() == '\n' ? 2 : 0);  // no comma at first
    text += "\n]}\n";
    const std::string& directory = plan.config.output.directory;
    try {
      create_directories(directory);
      write_file(directory + "/trace.json", text);
    } catch (const Error& error) {
      throw Error(Exit::io, std::string(error.what()) +
                                "; look at output.directory, or use output.trace_step = 0");
    }
  });
}

}  // namespace gptbench
