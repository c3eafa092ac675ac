// Messages of a GPU over MPI, and what it offloads to a file: arrays are copied to page-locked host
// memory, sent or written from there by the host, and what arrives is copied back. The queue is one
// of the host, driven by whoever waits; its pieces of work are copies, which complete on a stream,
// MPI requests and transfers of files.
#pragma once

#include <deque>

#include "cuda/cuda_queue.h"

namespace gptbench {

class StagedQueue final : public StagingQueue {
 public:
  // Queues of one `group` are driven together. `staging_bytes` hold the arrays of the largest
  // message (staging_bytes() of plan/staging.h). Throws Error(Exit::out_of_memory).
  StagedQueue(std::vector<HostQueue*>& group, int64_t staging_bytes);
  ~StagedQueue() override;

  void record(Event& event) override;
  // Does not block: what is enqueued later waits.
  void wait(const Event& event) override;
  void synchronize() override { host_.synchronize(); }
  void progress() override { host_.progress(); }

  void copy(void* to, const void* from, int64_t bytes) override;
  HostQueue& host() override { return host_; }
  char* staging() const override { return memory_; }
  int64_t staging_bytes() const override { return memory_bytes_; }
  // The same where a message of `bytes` is to fit.
  char* staging_of(int64_t bytes) const;

 private:
  // A wait for an event, or a copy; completes in its turn.
  class Step final : public PendingWork {
   public:
    void set_wait(const CudaEvent& event);
    void set_copy(CudaQueue& stream, void* to, const void* from, int64_t bytes);
    bool test() override;
    bool busy() const { return busy_; }

   private:
    // Target of a wait; both null: the entry is a copy. An event that was recorded on a stream
    // is kept itself: the stream runs on, so a later record of it completes as well. Of the host's
    // queue the point at that time is kept, since a later one may come behind this very wait.
    const CudaEvent* awaited_ = nullptr;
    const HostQueue* awaited_queue_ = nullptr;
    uint64_t awaited_ticket_ = 0;
    CudaQueue* stream_ = nullptr;
    void* to_ = nullptr;
    const void* from_ = nullptr;
    int64_t bytes_ = 0;
    CudaEvent copied_;
    bool started_ = false, busy_ = false;
  };
  Step& next_step();

  static constexpr int max_pending = 256;
  HostQueue host_;
  CudaQueue stream_;
  std::deque<Step> steps_;  // reused in turn
  size_t next_ = 0;
  char* memory_ = nullptr;
  int64_t memory_bytes_ = 0;
};

}  // namespace gptbench
