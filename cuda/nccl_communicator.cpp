#include "cuda/nccl_communicator.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>

#include "base/error.h"
#include "comm/pulse.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_queue.h"
#include "cuda/cuda_recording.h"
#include "plan/op_spec.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

ncclDataType_t nccl_type(DType type) {
  switch (type) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::fp8_e4m3:  // gathered, never added
      return ncclUint8;
    default:
      break;
  }
  GPTBENCH_CHECK(false, std::string("no message of type ") + name_of(type));
  return ncclFloat32;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<const Nccl> nccl, const Plan& plan, Axis axis,
                                   const std::map<std::string, ncclUniqueId>& ids)
    : nccl_(std::move(nccl)), axis_(axis), timed_(max_timed) {
  const std::vector<int64_t> group = plan.grid.group_of(plan.rank, axis);
  size_ = static_cast<int64_t>(group.size());
  rank_ = std::find(group.begin(), group.end(), plan.rank) - group.begin();
  const auto id_of = [&](const std::string& name) {
    const auto found = ids.find(name);
    GPTBENCH_CHECK(found != ids.end(), "nobody made the unique id of " + name);
    return found->second;
  };
  // One after the other: before NCCL 2.27 a thread may have one such call in progress. The group
  // and then the edges in their order are the same order on all ranks, so that none waits for one
  // that waits for it.
  or_give_up([&] {
    const NcclLinks links = links_of(plan, axis);
    if (links.collective)
      nccl_->join(group_, id_of(name_of_group(group)), static_cast<int>(size_),
                  static_cast<int>(rank_), peer_timeout_s);
    for (const NcclLinks::Edge& edge : links.edges) {
      const std::string name = name_of_edge(group[static_cast<size_t>(edge.from)],
                                            group[static_cast<size_t>(edge.to)], edge.way);
      nccl_->join(edges_[edge], id_of(name), 2, edge.from == rank_ ? 0 : 1, peer_timeout_s);
    }
    connect_group(plan);
    connect_edges();
    for (ncclComm_t comm : all()) Nccl::count_messages_of(comm, axis);
  });
}

// NCCL takes the buffers of an algorithm when it is first used, by a message of the size that it is
// for: here, before the arena takes what memory there is.
void NcclCommunicator::connect_group(const Plan& plan) {
  if (group_ == nullptr) return;
  std::map<std::pair<OpKind, DType>, std::set<int64_t>> counts;
  for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t times) {
    const Op& op = plan.ops[static_cast<size_t>(index)];
    const bool is_edge = op.kind == OpKind::send || op.kind == OpKind::receive;
    if (!is_message(op.kind) || is_edge || op.axis != axis_ || times == 0) return;
    const Slot held = op.kind == OpKind::reduce_scatter ? Slot::part : Slot::whole;
    const DType type = plan.buffers[static_cast<size_t>(op[held].buffer)].dtype;
    const int64_t count = op.as<MessageSize>().count.of(rows);
    counts[{op.kind, type}].insert(op.kind == OpKind::all_reduce ? count : count / size_);
  });
  CudaQueue queue;
  for (const auto& [message, sizes] : counts)
    for (const int64_t count : {*sizes.begin(), *sizes.rbegin()}) {
      CommRequest request;
      request.kind = message.first;
      request.type = message.second;
      request.count = count;
      const auto bytes =
          static_cast<size_t>(request.full_count(size_) * size_of(message.second)) + 1;
      void *in = nullptr, *out = nullptr;
      check_cuda(cudaMalloc(&in, bytes), "cudaMalloc");
      check_cuda(cudaMalloc(&out, bytes), "cudaMalloc");
      request.in = request.kind == OpKind::all_reduce ? out : in;
      request.out = out;
      start(request, queue.stream());
      queue.synchronize();
      check_cuda(cudaFree(in), "cudaFree");
      check_cuda(cudaFree(out), "cudaFree");
    }
}

// NCCL connects two ranks in their first message, whose call waits for that of the peer: ranks of a
// ring that all send first would wait for ever. Here all take the edges in one order.
void NcclCommunicator::connect_edges() {
  if (edges_.empty()) return;
  CudaQueue queue;
  void* byte = nullptr;
  check_cuda(cudaMalloc(&byte, 1), "cudaMalloc");
  for (const auto& [edge, comm] : edges_) {
    if (edge.from == rank_)
      nccl_->send(byte, 1, ncclUint8, 1, comm, queue.stream());
    else
      nccl_->receive(byte, 1, ncclUint8, 0, comm, queue.stream());
  }
  queue.synchronize();
  check_cuda(cudaFree(byte), "cudaFree");
}

// Peers that know nothing of an exception here do not leave.
NcclCommunicator::~NcclCommunicator() {
  if (std::uncaught_exceptions() > 0) {
    const char* const why = "leaving NCCL after an error";
    end_together(give_up(why), why);
    return;
  }
  for (ncclComm_t comm : all()) Nccl::forget_messages_of(comm);
  nccl_->destroy(all());
}

std::vector<ncclComm_t> NcclCommunicator::all() const {
  std::vector<ncclComm_t> comms;
  if (group_ != nullptr) comms.push_back(group_);
  for (const auto& [edge, comm] : edges_)
    if (comm != nullptr) comms.push_back(comm);
  return comms;
}

void NcclCommunicator::check() const {
  for (ncclComm_t comm : all()) nccl_->check(comm);
  // Those of a recording are not seen: their events tell of an earlier replay.
  for (; completed_ < pending_; ++completed_) {
    const size_t place = (first_ + completed_) % max_timed;
    const Timed& oldest = timed_[place];
    if (cudaEventQuery(oldest.end) != cudaSuccess) {
      cudaGetLastError();  // not being ready counts as one
      // Once per operation: a watchdog takes an entry for progress.
      if (place != waited_for_) pulse.wait_for(oldest.kind, axis_);
      waited_for_ = place;
      return;
    }
    pulse.advance();
  }
}

std::vector<std::function<void()>> NcclCommunicator::give_up(const std::string& why) {
  std::vector<std::function<void()>> endings;
  for (ncclComm_t comm : all()) {
    Nccl::forget_messages_of(comm);
    endings.push_back([comm, nccl = nccl_] { nccl->abort(comm); });
  }
  group_ = nullptr;
  edges_.clear();
  if (given_up_.empty()) given_up_ = why;
  return endings;
}

ncclComm_t NcclCommunicator::edge(int64_t from, int64_t to, int tag) const {
  const auto found = edges_.find({from, to, tag & 1});
  GPTBENCH_CHECK(found != edges_.end(), "messages from " + std::to_string(from) + " to " +
                                            std::to_string(to) + " are of the plan");
  return found->second;
}

void NcclCommunicator::start(const CommRequest& r, cudaStream_t stream) const {
  const ncclDataType_t type = nccl_type(r.type);
  switch (r.kind) {
    case OpKind::all_reduce:
      return nccl_->all_reduce(r.out, r.count, type, group_, stream, r.maximum ? ncclMax : ncclSum);
    case OpKind::reduce_scatter:
      return nccl_->reduce_scatter(r.out, r.in, r.count, type, group_, stream);
    case OpKind::all_gather:
      return nccl_->all_gather(r.out, r.in, r.count, type, group_, stream);
    case OpKind::send:
      return nccl_->send(r.in, r.count, type, 1, edge(rank_, r.peer, r.tag), stream);
    case OpKind::receive:
      return nccl_->receive(r.out, r.count, type, 0, edge(r.peer, rank_, r.tag), stream);
    default:
      GPTBENCH_CHECK(false, "a message of a known kind");
  }
}

void NcclCommunicator::enqueue(Queue& queue, const CommRequest& request) {
  const OpKind kind = request.kind;
  const int64_t payload_bytes = request.full_count(size_) * size_of(request.type);
  if (!given_up_.empty())
    throw Error(Exit::peer,
                "the communicators of NCCL were given up after an earlier error: " + given_up_);
  const cudaStream_t stream = stream_of(queue);
  if (current_recording() != 0) {
    // Plain events would only order what is recorded; these are recorded by every replay. Its times
    // are taken before the next one, when it has completed.
    const auto timed = std::make_shared<Timed>();
    timed->kind = kind;
    GPTBENCH_CUDA(cudaEventRecordWithFlags(timed->begin, stream, cudaEventRecordExternal));
    or_give_up([&] { start(request, stream); });
    GPTBENCH_CUDA(cudaEventRecordWithFlags(timed->end, stream, cudaEventRecordExternal));
    before_each_replay([this, timed, kind, payload_bytes] {
      if (timed->replayed) take_time(*timed);
      timed->replayed = true;
      book(kind, payload_bytes);
    });
    recorded_.push_back(timed);
    return;
  }
  if (pending_ == max_timed) harvest(max_timed / 2);
  Timed& timed = timed_[(first_ + pending_) % max_timed];
  timed.kind = kind;
  GPTBENCH_CUDA(cudaEventRecord(timed.begin, stream));
  or_give_up([&] { start(request, stream); });
  GPTBENCH_CUDA(cudaEventRecord(timed.end, stream));
  ++pending_;
  book(kind, payload_bytes);
}

void NcclCommunicator::book(OpKind kind, int64_t payload_bytes) {
  CommStatistics& statistics = statistics_[static_cast<size_t>(kind)];
  statistics.count += 1;
  statistics.bytes += payload_bytes;
}

// Waits for the operation.
void NcclCommunicator::take_time(const Timed& timed) const {
  wait_watched(timed.end);
  CommStatistics& statistics = statistics_[static_cast<size_t>(timed.kind)];
  statistics.time_s += seconds_between(timed.begin, timed.end);
  statistics.least_s = statistics.time_s;
}

// Adds up the times of the oldest operations until `keep` are left.
void NcclCommunicator::harvest(size_t keep) const {
  while (pending_ > keep) {
    take_time(timed_[first_]);
    first_ = (first_ + 1) % max_timed;
    --pending_;
    if (completed_ > 0) --completed_;
  }
}

// And those of the latest replay.
void NcclCommunicator::harvest_all() const {
  harvest(0);
  for (const std::shared_ptr<Timed>& timed : recorded_) {
    if (timed->replayed) take_time(*timed);
    timed->replayed = false;
  }
  const auto ended = [](const std::shared_ptr<Timed>& timed) { return timed.use_count() == 1; };
  recorded_.erase(std::remove_if(recorded_.begin(), recorded_.end(), ended), recorded_.end());
}

CommStatistics NcclCommunicator::statistics(OpKind kind) const {
  harvest_all();
  return statistics_[static_cast<size_t>(kind)];
}

void NcclCommunicator::reset_statistics() {
  harvest_all();
  statistics_ = {};
}

}  // namespace gptbench
