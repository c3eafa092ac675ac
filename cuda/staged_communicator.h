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
  void enqueue(Queue& queue, const CommRequest& request) override;
  // Times are those of MPI, copies not included.
  CommStatistics statistics(OpKind kind) const override { return host_->statistics(kind); }
  void reset_statistics() override { host_->reset_statistics(); }

 private:
  std::unique_ptr<Communicator> host_;
  bool from_device_;
};

}  // namespace gptbench
