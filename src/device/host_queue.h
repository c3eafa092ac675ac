// Queues of the host. A compute queue executes in the calling thread, so it never holds anything; a
// communication queue holds work that completes in the background (MPI requests), which the comm
// layer adds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace gptbench {

enum class Bf16Products : int;  // host/gemm_onednn.h

// Work that completes in the background. The owner keeps it alive until test() returned true; the
// queue then forgets it, and the owner may reuse it.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  // Whether it has completed; drives it forward (starts it, the first time), does not block.
  virtual bool test() = 0;
};

// Tickets number the work of a queue from 1 in the order of add(); ticket t counts as complete when
// tickets 1 .. t have completed.
class HostQueue final : public Queue {
 public:
  HostQueue() = default;
  // A wait for one queue of `group` drives them all: the peers of this rank's other messages may be
  // waiting for it. The group outlives its queues. `bf16_products` selects how kernels of this
  // queue compute GEMMs; null: by the library.
  explicit HostQueue(std::vector<HostQueue*>& group, const Bf16Products* bf16_products = nullptr)
      : group_(&group), bf16_products_(bf16_products) {
    group.push_back(this);
  }
  ~HostQueue() override;
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  // Appends work; blocks for the oldest when `capacity` pieces are pending.
  void add(PendingWork& work);

  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override { wait_until(added_); }
  // Tests pending work, oldest first, up to the first that has not completed.
  void progress() override;

  uint64_t added() const { return added_; }  // the latest ticket
  bool completed(uint64_t ticket) const { return ticket <= completed_; }
  void wait_until(uint64_t ticket);
  int64_t pending() const { return static_cast<int64_t>(added_ - completed_); }

  const Bf16Products* bf16_products() const { return bf16_products_; }

  static constexpr int64_t capacity = 4096;

 private:
  void drive();
  PendingWork& oldest() { return *ring_[completed_ % capacity]; }

  std::array<PendingWork*, capacity> ring_{};
  uint64_t added_ = 0;
  uint64_t completed_ = 0;
  std::vector<HostQueue*>* group_ = nullptr;  // null: alone
  const Bf16Products* bf16_products_ = nullptr;
};

// A queue for host work on arrays in a device's own memory, which go through host memory.
class StagingQueue : public Queue {
 public:
  // Queue for work on the host memory, in one order with copy().
  virtual HostQueue& host() = 0;
  // staging_bytes() of host memory, shared by consecutive pieces of work.
  virtual char* staging() const = 0;
  virtual int64_t staging_bytes() const = 0;
  // Enqueues a copy between the device's memory and staging().
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
};

class HostEvent final : public Event {
 private:
  friend class HostQueue;
  HostQueue* queue_ = nullptr;  // null: never recorded
  uint64_t ticket_ = 0;
};

}  // namespace gptbench
