#include "engine/trace.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "plan/tasks.h"

namespace gptbench {

Trace::Trace(const Plan& plan, std::unique_ptr<Stopwatch> clock)
    : clock_(std::move(clock)), latest_(plan.ops.size()) {
  size_t events = 0, waits = 0;
  for_each_operation(plan, [&](int32_t i, int64_t /*rows*/, int64_t times) {
    events += static_cast<size_t>(times);
    waits += static_cast<size_t>(times) * plan.ops[static_cast<size_t>(i)].waits_for.size();
  });
  events_.reserve(events);
  waits_.reserve(waits);
  if (clock_ != nullptr) marks_.reserve(events + waits);
  for (size_t i = 0; i < plan.ops.size(); ++i)
    latest_[i].assign(static_cast<size_t>(plan.ops[i].events), -1);
}

void Trace::begin_step(double now_s) {
  origin_s_ = now_s;
  events_.clear();
  waits_.clear();
  marks_.clear();
  for (std::vector<int32_t>& latest : latest_) std::fill(latest.begin(), latest.end(), -1);
}

TraceEvent& Trace::begin(int32_t index, const Op& op, const Task& task, int64_t first_row) {
  // Messages in flight keep references to events: the memory must not move.
  GPTBENCH_CHECK(events_.size() < events_.capacity(), "a step of the plan that is traced");
  if (op.events > 0)
    latest_[static_cast<size_t>(index)][event_of(op, task.micro_batch)] =
        static_cast<int32_t>(events_.size());
  TraceEvent& event = events_.emplace_back();
  event.op = index;
  event.task = task;
  event.first_row = first_row;
  return event;
}

void Trace::waited(int32_t op, size_t event, double begin_s, double end_s) {
  const int32_t awaited = latest_[static_cast<size_t>(op)][event];
  if (awaited >= 0)
    waits_.push_back({awaited, begin_s, end_s});
  else if (!marks_.empty() && marks_.back().wait)  // issued in an earlier step
    marks_.back().index = -1;
}

void Trace::mark(Queue& compute, Mark mark) {
  if (clock_ == nullptr) return;
  clock_->mark(compute, static_cast<int>(marks_.size()));
  marks_.push_back(mark);
}

void Trace::collect() {
  if (clock_ == nullptr) return;
  std::vector<double> seconds(marks_.size());
  clock_->collect(seconds);
  double at_s = origin_s_;
  for (size_t i = 0; i < marks_.size(); ++i) {
    const double begin_s = at_s;
    at_s += seconds[i];
    const size_t index = static_cast<size_t>(marks_[i].index);
    if (marks_[i].index < 0) continue;
    double& begin = marks_[i].wait ? waits_[index].begin_s : events_[index].begin_s;
    double& end = marks_[i].wait ? waits_[index].end_s : events_[index].end_s;
    begin = begin_s;
    end = at_s;
  }
}

}  // namespace gptbench
