// Trace of one step of a rank, operation by operation, in memory allocated before the step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

// One operation of a task; times are those of now_s(). Where the device has a stopwatch, compute
// operations and what they wait for have the times of the device, counted from the start of the
// step; others were enqueued then.
struct TraceEvent {
  int32_t op = -1;  // of the plan
  Task task;
  int64_t first_row = 0;              // as in OpCall
  double begin_s = 0.0, end_s = 0.0;  // of the call: computing, or enqueueing
  MessageTimes message;               // messages only, as far as the communicator knows them
};

struct TraceWait {
  int32_t event = -1;  // index of the event that is waited for
  double begin_s = 0.0, end_s = 0.0;
};

class Trace {
 public:
  // Takes the memory for a step of `plan`. clock: of the device, null: the host's tells the times.
  Trace(const Plan& plan, std::unique_ptr<Stopwatch> clock);

  // Called by the engine, in the order of issue.
  void begin_step(double now_s);
  TraceEvent& begin(int32_t index, const Op& op, const Task& task,
                    int64_t first_row);  // index: of op
  void waited(int32_t op, size_t event, double begin_s, double end_s);
  // From here on the compute queue works on the latest event; waits, which waited() then tells of;
  // has ended the step.
  void mark_event(Queue& compute) { mark(compute, {false, static_cast<int>(events_.size()) - 1}); }
  void mark_wait(Queue& compute) { mark(compute, {true, static_cast<int>(waits_.size())}); }
  void mark_end(Queue& compute) {
    if (clock_ != nullptr) clock_->mark(compute, -1);
  }
  // Reads the device's times. The compute queue has been synchronised.
  void collect();

  double origin_s() const { return origin_s_; }  // beginning of the step
  const std::vector<TraceEvent>& events() const { return events_; }
  const std::vector<TraceWait>& waits() const { return waits_; }

 private:
  struct Mark {
    bool wait;
    int index;  // of waits_ or events_; -1: an operation of an earlier step
  };
  void mark(Queue& compute, Mark mark);

  std::unique_ptr<Stopwatch> clock_;
  std::vector<Mark> marks_;
  double origin_s_ = 0.0;
  std::vector<TraceEvent> events_;
  std::vector<TraceWait> waits_;
  std::vector<std::vector<int32_t>> latest_;  // [op][event_of] index in events_
};

}  // namespace gptbench
