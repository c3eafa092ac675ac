// Messages of one axis over NCCL, for arrays on GPUs; queues are CudaQueues, whose streams the
// operations go to.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "cuda/cuda_queue.h"
#include "cuda/cuda_stopwatch.h"
#include "cuda/nccl_library.h"
#include "cuda/stream_watch.h"
#include "plan/plan.h"

namespace gptbench {

// Communicators of NCCL that one rank takes part in along an axis. NCCL runs what is asked of one
// communicator in one order, so that two queues on it would wait for each other: collectives have
// one, and the messages from one rank to another have one for each way (forward, backward).
//
// Example, pipeline axis of 3 stages: stage 1 receives activations on (0, 1, forward), sends them
// on (1, 2, forward), receives gradients on (2, 1, backward) and sends them on (1, 0, backward).
struct NcclLinks {
  struct Edge {
    int64_t from, to;  // places in the group
    int way;           // tag & 1
    // First those of the even pairs of neighbours, which have no rank in common: a chain of ranks
    // is joined in two rounds.
    bool operator<(const Edge& other) const {
      const int64_t odd = std::min(from, to) % 2, others_odd = std::min(other.from, other.to) % 2;
      return std::tie(odd, from, to, way) < std::tie(others_odd, other.from, other.to, other.way);
    }
  };
  bool collective = false;
  std::vector<Edge> edges;  // that this rank is an end of, in that order
};
NcclLinks links_of(const Plan& plan, Axis axis);

class NcclCommunicator final : public Communicator, private StreamWatch {
 public:
  // `ids` maps names to unique ids of NCCL (name_of_group, name_of_edge); joins what links_of()
  // says and waits for the peers. Throws Error(Exit::peer). Where it is destroyed by an exception
  // the communicators are aborted, else left in order.
  NcclCommunicator(std::shared_ptr<const Nccl> nccl, const Plan& plan, Axis axis,
                   const std::map<std::string, ncclUniqueId>& ids);
  ~NcclCommunicator() override;

  int64_t size() const override { return size_; }
  int64_t rank() const override { return rank_; }
  void enqueue(Queue& queue, const CommRequest& request) override;
  CommStatistics statistics(OpKind kind) const override;
  void reset_statistics() override;

 private:
  // Throws Error(Exit::peer) where one of its communicators has met an error. Says to a watchdog
  // which operations have completed (comm/pulse.h).
  void check() const override;
  // Its communicators, to be aborted, which ends their kernels; no operation may follow.
  std::vector<std::function<void()>> give_up(const std::string& why) override;

  // Start and end of an operation on its stream, of which the time is taken later.
  struct Timed {
    TimedEvent begin, end;
    OpKind kind = OpKind::all_reduce;
    bool replayed = false;  // of recorded operations: since their times were taken
  };
  static constexpr size_t max_timed = 4096;

  void connect_group(const Plan& plan);
  void connect_edges();
  std::vector<ncclComm_t> all() const;
  ncclComm_t edge(int64_t from, int64_t to, int tag) const;
  void start(const CommRequest& request, cudaStream_t stream) const;
  void book(OpKind kind, int64_t payload_bytes);
  void harvest(size_t keep) const;
  void harvest_all() const;
  void take_time(const Timed& timed) const;

  std::shared_ptr<const Nccl> nccl_;
  Axis axis_;
  int64_t size_ = 1, rank_ = 0;
  ncclComm_t group_ = nullptr;
  std::map<NcclLinks::Edge, ncclComm_t> edges_;
  std::string given_up_;  // why; "": it is not
  mutable std::array<CommStatistics, num_op_kinds> statistics_{};
  mutable std::vector<Timed> timed_;  // a ring: [first_, first_ + pending_)
  mutable size_t first_ = 0, pending_ = 0;
  mutable size_t completed_ = 0;           // of the pending ones, as check() has seen it
  mutable size_t waited_for_ = max_timed;  // place of the operation that check() last waited for
  // Times of operations in recordings, which share ownership while they live.
  mutable std::vector<std::shared_ptr<Timed>> recorded_;
};

// Names under which ranks find each other's unique ids; ranks are global.
std::string name_of_group(const std::vector<int64_t>& members);
std::string name_of_edge(int64_t from, int64_t to, int way);
// Names of the ids that this rank makes: of the group whose first member it is, of edges that it
// sends on.
std::vector<std::string> ids_made_here(const Plan& plan, Axis axis);

}  // namespace gptbench
