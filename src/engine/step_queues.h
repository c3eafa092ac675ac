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
  // Slot of the instance that `wait` names, for a task in slot `slot`.
  int32_t awaited_slot(const Wait& wait, int32_t slot) const;
  // Work enqueued on `queue` from here on starts once that instance of operation `op` has ended.
  void wait(QueueId queue, int32_t op, int32_t slot);
  // Operation `op`, which others wait for, has been issued on `queue` for a task in slot `slot`.
  void signal(QueueId queue, int32_t op, int32_t slot);

  // While the device records its compute queue (Recorder), every other queue joins
  // the recording behind it; in the end the compute queue waits for all that did.
  void begin_recording();
  void join_recording();

 private:
  const Plan& plan_;
  Device& device_;
  std::array<std::unique_ptr<Queue>, num_queues> queues_;
  // [op][slot]; empty where nobody waits for the operation.
  std::vector<std::vector<std::unique_ptr<Event>>> events_;
  std::vector<int32_t> latest_slot_;  // [op] of its latest instance
  // Behind the compute operations issued before the latest operation of another queue.
  std::unique_ptr<Event> compute_point_;
  bool compute_issued_ = false;                                   // since then
  std::array<bool, num_queues> used_{};                           // since begin_recording()
  std::array<std::unique_ptr<Event>, num_queues> recorded_ends_;  // of all but the compute queue
};

}  // namespace gptbench
