// A communicator of the host for arrays on a GPU (cuda/staged_queue.h).
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace gptbench {

class StagedCommunicator final : public Communicator {
 public:
  // `host` works on host memory and HostQueues; `from_device`: send and receive take arrays on the
  // GPU too. Queues are StagedQueues.
  StagedCommunicator(std::unique_ptr<Communicator> host, bool from_device)
      : host_(std::move(host)), from_device_(from_device) {}

  int64_t size() const override { return host_->size(); }
  int64_t rank() const override { return host_->rank(); }
  void all_reduce(Queue& queue, void* data, int64_t count, DType type) override {
    reduce(&Communicator::all_reduce, queue, data, count, type);
  }
  void all_reduce_max(Queue& queue, void* data, int64_t count, DType type) override {
    reduce(&Communicator::all_reduce_max, queue, data, count, type);
  }
  void reduce_scatter(Queue& queue, void* out, const void* in, int64_t count, DType type) override;
  void all_gather(Queue& queue, void* out, const void* in, int64_t count, DType type) override;
  void send(Queue& queue, const void* data, int64_t count, DType type, int peer, int tag) override;
  void receive(Queue& queue, void* data, int64_t count, DType type, int peer, int tag) override;
  // Times are those of MPI, copies not included.
  CommStatistics statistics(OpKind kind) const override { return host_->statistics(kind); }
  void reset_statistics() override { host_->reset_statistics(); }

 private:
  using Reduction = void (Communicator::*)(Queue&, void*, int64_t, DType);
  void reduce(Reduction reduction, Queue& queue, void* data, int64_t count, DType type);

  std::unique_ptr<Communicator> host_;
  bool from_device_;
};

}  // namespace gptbench
