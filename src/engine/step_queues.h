// The queues of a rank, and the events by which work of one queue waits for work of another.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

class StepQueues {
 public:
  // Both must outlive it. Takes the events, no queues yet.
  StepQueues(const Plan& plan, Device& device);
  // May throw Error(Exit::out_of_memory).
  void make();

  Queue& operator[](QueueId id) const { return *queues_[static_cast<size_t>(id)]; }

  // To be called before each operation is issued on `queue`. Work of another queue than compute
  // then starts after the compute operations issued so far (on the host these have ended).
  void begin_operation(QueueId queue);
  // Work enqueued on `queue` from here on starts once the instance of operation `op` has ended that
  // was issued last with the event (event_of).
  void wait(QueueId queue, int32_t op, size_t event);
  // Operation `op`, which others wait for, has been issued on `queue` with the event.
  void signal(QueueId queue, int32_t op, size_t event);

  // While the device records its compute queue (Recorder), every other queue joins
  // the recording behind it; in the end the compute queue waits for all that did.
  void begin_recording();
  void join_recording();

 private:
  const Plan& plan_;
  Device& device_;
  std::array<std::unique_ptr<Queue>, num_queues> queues_;
  std::vector<std::vector<std::unique_ptr<Event>>> events_;  // [op][event]
  // Behind the compute operations issued before the latest operation of another queue.
  std::unique_ptr<Event> compute_point_;
  bool compute_issued_ = false;                                   // since then
  std::array<bool, num_queues> used_{};                           // since begin_recording()
  std::array<std::unique_ptr<Event>, num_queues> recorded_ends_;  // of all but the compute queue
};

}  // namespace gptbench
