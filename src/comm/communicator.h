// The engine's interface to communication: one communicator per axis, whose operations are enqueued
// on a queue. Implementations: MPI (mpi_communicator.h) and NCCL (cuda/).
#pragma once

#include <array>
#include <cstdint>

#include "device/device.h"
#include "plan/grid.h"
#include "plan/operation.h"

namespace gptbench {

// Sums since the last reset, of this rank.
struct CommStatistics {
  int64_t count = 0;  // operations
  int64_t bytes = 0;  // payload of the full array
  // Sums over operations; they exceed wall time where operations overlap. The host tests messages
  // between other operations. A message took at least until the last test that found it pending,
  // and at most until the first that found it completed: least_s and time_s are these bounds.
  double least_s = 0.0, time_s = 0.0;
};

inline CommStatistics difference(const CommStatistics& a, const CommStatistics& b) {
  return {a.count - b.count, a.bytes - b.bytes, a.least_s - b.least_s, a.time_s - b.time_s};
}

// Times of one operation, by now_s(); -1: not known.
struct MessageTimes {
  double started_s = -1.0;    // passed to the library, after waiting in its queue
  double pending_s = -1.0;    // last test that found it pending
  double completed_s = -1.0;  // first test that found it completed
};

// One operation on a communicator, as the functions below put it.
struct CommRequest {
  OpKind kind = OpKind::all_reduce;
  void* out = nullptr;       // null for send
  const void* in = nullptr;  // null for receive
  int64_t count = 0;
  DType type = DType::f32;
  int peer = 0, tag = 0;  // of send and receive
  bool maximum = false;   // of all_reduce

  // Elements of the full array in a group of `size` ranks.
  int64_t full_count(int64_t size) const {
    return kind == OpKind::reduce_scatter || kind == OpKind::all_gather ? count * size : count;
  }
};

// A group of ranks along one axis. All members call the same operations in the same order (SPMD).
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t size() const = 0;  // ranks in the group
  virtual int64_t rank() const = 0;  // this rank's place in the group

  // All operations enqueue and return. Their arrays must not be touched until an event recorded
  // after them has completed. Types are f32, f64, bf16 and f16 (each addition in f32, rounded); fp8
  // for all_gather only.
  virtual void enqueue(Queue& queue, const CommRequest& request) = 0;

  // data[i] = sum over the group's ranks of data[i], i = 0 .. count-1, in place. Global result, the
  // same bits on all ranks. Example, size = 2: {1, 2} on rank 0 and {10, 20} on rank 1 become
  // {11, 22} on both.
  void all_reduce(Queue& queue, void* data, int64_t count, DType type) {
    enqueue(queue, {OpKind::all_reduce, data, data, count, type});
  }
  // The same with the maximum in place of the sum; f32 only. Counted as an all_reduce.
  void all_reduce_max(Queue& queue, void* data, int64_t count, DType type) {
    CommRequest request{OpKind::all_reduce, data, data, count, type};
    request.maximum = true;
    enqueue(queue, request);
  }
  // out[i] = sum over ranks of in[rank count + i]: `in` holds size() shards of `count` elements,
  // this rank receives the sum of its own. Example, size = 2, count = 1: {1, 2} on rank 0 and {10,
  // 20} on rank 1 give 11 on rank 0 and 22 on rank 1. out does not overlap in.
  void reduce_scatter(Queue& queue, void* out, const void* in, int64_t count, DType type) {
    enqueue(queue, {OpKind::reduce_scatter, out, in, count, type});
  }
  // out[r count + i] = in[i] of rank r. `in` may be this rank's own part of `out`. Example, size =
  // 2, count = 1: 5 on rank 0 and 7 on rank 1 give {5, 7} on both.
  void all_gather(Queue& queue, void* out, const void* in, int64_t count, DType type) {
    enqueue(queue, {OpKind::all_gather, out, in, count, type});
  }
  // To and from rank `peer` of the group: `count` elements of `data`. Messages of one tag arrive in
  // the order of sending. Example: send(..., peer 1, tag 0) on rank 0 matches receive(..., peer 0,
  // tag 0) on rank 1.
  void send(Queue& queue, const void* data, int64_t count, DType type, int peer, int tag) {
    CommRequest request{OpKind::send, nullptr, data, count, type};
    request.peer = peer;
    request.tag = tag;
    enqueue(queue, request);
  }
  void receive(Queue& queue, void* data, int64_t count, DType type, int peer, int tag) {
    CommRequest request{OpKind::receive, data, nullptr, count, type};
    request.peer = peer;
    request.tag = tag;
    enqueue(queue, request);
  }

  // The next operation writes its times to `times`, which must stay until it has completed. Where
  // an implementation does not know them, nothing is written.
  virtual void trace_next(MessageTimes* /*times*/) {}

  // Statistics of one kind of message; receives are counted apart from sends.
  virtual CommStatistics statistics(OpKind kind) const = 0;
  virtual void reset_statistics() = 0;
};

// The communicators of one rank by axis; null where the plan has no message along an axis.
struct CommunicatorTable {
  std::array<Communicator*, num_axes> by_axis{};
  Communicator& operator[](Axis axis) const { return *by_axis[static_cast<int>(axis)]; }
};

}  // namespace gptbench
