// What the engine knows of communication: one communicator an axis, every operation of which takes
// a queue. Implementations: MPI (mpi_communicator.h) and NCCL (cuda/).
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
  // Summed over operations, so that of those that overlap it is more than wall time. A message is
  // known to have completed when it is tested, which the host does between other operations: it
  // took at least from its start to the last test that found it on its way, and at most to the
  // first that did not. least_s and time_s are those bounds.
  double least_s = 0.0, time_s = 0.0;
};

// Of one operation, by now_s(); -1: not known.
struct MessageTimes {
  double started_s = -1.0;    // handed to the library; before, it may have waited in its queue
  double pending_s = -1.0;    // last seen on its way
  double completed_s = -1.0;  // first seen completed
};

// A group of ranks along one axis. All members call the same operations in the same order (SPMD).
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t size() const = 0;  // ranks in the group
  virtual int64_t rank() const = 0;  // this rank's place in the group

  // All operations enqueue and return; their arrays must not be touched until the queue has passed
  // an event recorded behind. Types are f32, f64, and bf16 and f16 (summed in f32, rounded once an
  // addition); fp8 is gathered alone.

  // data[i] = sum over the group's ranks of data[i], i = 0 .. count-1, in place. Global result, the
  // same bits on all ranks. Example, size = 2: {1, 2} on rank 0 and {10, 20} on rank 1 become
  // {11, 22} on both.
  virtual void all_reduce(Queue& queue, void* data, int64_t count, DType type) = 0;
  // The same for the maximum, of f32. Counted as an all_reduce.
  virtual void all_reduce_max(Queue& queue, void* data, int64_t count, DType type) = 0;
  // out[i] = sum over ranks of in[rank count + i]: `in` holds size() shards of `count` elements,
  // this rank receives the sum of its own. Example, size = 2, count = 1: {1, 2} on rank 0 and {10,
  // 20} on rank 1 give 11 on rank 0 and 22 on rank 1. out does not overlap in.
  virtual void reduce_scatter(Queue& queue, void* out, const void* in, int64_t count,
                              DType type) = 0;
  // out[r count + i] = in[i] of rank r. `in` may be this rank's own part of `out`. Example, size =
  // 2, count = 1: 5 on rank 0 and 7 on rank 1 give {5, 7} on both.
  virtual void all_gather(Queue& queue, void* out, const void* in, int64_t count, DType type) = 0;
  // To and from rank `peer` of the group; messages of one tag arrive in the order in which they
  // were sent.
  virtual void send(Queue& queue, const void* data, int64_t count, DType type, int peer,
                    int tag) = 0;
  virtual void receive(Queue& queue, void* data, int64_t count, DType type, int peer, int tag) = 0;

  // The next operation writes its times to `times`, which must stay until it has completed. Where
  // an implementation does not know them, nothing is written.
  virtual void trace_next(MessageTimes* /*times*/) {}

  // Of messages of one kind; receives are booked apart from sends.
  virtual CommStatistics statistics(OpKind kind) const = 0;
  virtual void reset_statistics() = 0;
};

// The communicators of one rank by axis; null where the plan has no message along an axis.
struct CommunicatorTable {
  std::array<Communicator*, num_axes> by_axis{};
  Communicator& operator[](Axis axis) const { return *by_axis[static_cast<int>(axis)]; }
};

}  // namespace gptbench
