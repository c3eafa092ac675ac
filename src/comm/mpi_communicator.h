// Collectives of one axis over MPI, for buffers in host memory.
#pragma once

#include <mpi.h>

#include <vector>

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
  void all_reduce(Queue& queue, void* data, int64_t count, DType type) override;
  CommStatistics all_reduce_statistics() const override { return all_reduce_; }
  void reset_statistics() override { all_reduce_ = {}; }

 private:
  // One operation in progress, in pieces of max_message_bytes of which two are on the way at a
  // time. It starts when the queue first tests it, which is when all earlier operations of the
  // queue have completed: so all ranks start the pieces of all operations in the same order.
  class AllReduce final : public PendingWork {
   public:
    void set(MpiCommunicator& owner, void* data, int64_t count, DType type);
    bool test() override;
    void wait() override;
    bool busy() const { return busy_; }

   private:
    void start_pieces();
    bool finished() const;

    MpiCommunicator* owner_ = nullptr;
    char* data_ = nullptr;
    int64_t count_ = 0, started_ = 0;  // elements
    DType type_ = DType::f32;
    MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    double start_s_ = -1.0;
    bool busy_ = false;
  };

  static constexpr int max_pending = 256;

  MPI_Comm comm_;
  int size_ = 1, rank_ = 0;
  std::vector<AllReduce> pool_;
  int next_ = 0;
  CommStatistics all_reduce_;
};

// Throws Error(Exit::peer) with MPI's own words when `code` is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace gptbench
