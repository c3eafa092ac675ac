// Messages of one axis over MPI, for buffers in host memory.
#pragma once

#include <mpi.h>

#include <array>
#include <deque>

#include "comm/communicator.h"
#include "device/host_queue.h"

namespace gptbench {

class MpiCommunicator final : public Communicator {
 public:
  // Takes over `comm` and frees it. Its messages are counted under `axis`.
  MpiCommunicator(MPI_Comm comm, Axis axis);
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int64_t size() const override { return size_; }
  int64_t rank() const override { return rank_; }
  void enqueue(Queue& queue, const CommRequest& request) override;
  CommStatistics statistics(OpKind kind) const override {
    return statistics_[static_cast<size_t>(kind)];
  }
  void reset_statistics() override { statistics_ = {}; }
  void trace_next(MessageTimes* times) override { trace_next_ = times; }

 private:
  // One operation in progress. It starts when the queue first tests it, after all earlier
  // operations of the queue have completed: so all ranks start collectives in the same order. An
  // all-reduce is cut into pieces of max_message_bytes, two of which are in flight at a time.
  class Work final : public PendingWork {
   public:
    void set(MpiCommunicator& owner, const CommRequest& request);
    bool test() override;
    bool busy() const { return busy_; }

   private:
    void start();
    void start_pieces();
    bool finished() const;

    MpiCommunicator* owner_ = nullptr;
    CommRequest request_;
    int64_t started_ = 0;  // elements
    MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    double start_s_ = -1.0, pending_s_ = -1.0;
    MessageTimes* times_ = nullptr;
    bool busy_ = false;
  };

  // One that is not in flight; addresses of others stay.
  Work& free_work();

  MPI_Comm comm_;
  int size_ = 1, rank_ = 0;
  std::deque<Work> pool_;
  size_t next_ = 0;
  MessageTimes* trace_next_ = nullptr;
  std::array<CommStatistics, num_op_kinds> statistics_{};
};

// Throws Error(Exit::peer) with MPI's own message where `code` is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace gptbench
