// What happened in one step of a rank, operation by operation, in memory allocated before the step.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "plan/plan.h"

namespace gptbench {

// One operation of a task; times are those of now_s().
struct TraceEvent {
  int32_t op = -1;  // of the plan
  Task task;
  double begin_s = 0.0, end_s = 0.0;  // of the call: computing, or enqueueing
  MessageTimes message;               // messages only, as far as the communicator knows them
};

struct TraceWait {
  int32_t event = -1;  // index of the event that is waited for
  double begin_s = 0.0, end_s = 0.0;
};

class Trace {
 public:
  // Takes the memory for a step of `plan`.
  explicit Trace(const Plan& plan);

  // Called by the engine, in the order of issue.
  void begin_step(double now_s);
  TraceEvent& begin(int32_t op, const Task& task);
  void waited(int32_t op, int32_t slot, double begin_s, double end_s);

  double origin_s() const { return origin_s_; }  // beginning of the step
  const std::vector<TraceEvent>& events() const { return events_; }
  const std::vector<TraceWait>& waits() const { return waits_; }

 private:
  double origin_s_ = 0.0;
  std::vector<TraceEvent> events_;
  std::vector<TraceWait> waits_;
  std::vector<std::vector<int32_t>> latest_;  // [op][slot] event; empty where nobody waits
};

}  // namespace gptbench
