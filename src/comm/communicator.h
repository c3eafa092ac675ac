// What the engine knows of communication: one communicator an axis, every operation of which takes
// a queue. Implementations: MPI (mpi_communicator.h) and NCCL (cuda/).
#pragma once

#include <array>
#include <cstdint>

#include "device/device.h"
#include "plan/grid.h"

namespace gptbench {

// Sums since the last reset, of this rank.
struct CommStatistics {
  int64_t count = 0;  // operations
  int64_t bytes = 0;  // payload of the full array
  double time_s =
      0.0;  // from start to completion, summed; of overlapping operations more than wall time
};

// A group of ranks along one axis. All members call the same operations in the same order (SPMD).
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t size() const = 0;  // ranks in the group
  virtual int64_t rank() const = 0;  // this rank's place in the group

  // data[i] = sum over the group's ranks of data[i], i = 0 .. count-1, in place; type f32 or f64.
  // Global result, the same bits on all ranks. Enqueues and returns; `data` must not be touched
  // until the queue has passed an event recorded behind. Example, size = 2: {1, 2} on rank 0 and
  // {10, 20} on rank 1 become {11, 22} on both.
  virtual void all_reduce(Queue& queue, void* data, int64_t count, DType type) = 0;

  virtual CommStatistics all_reduce_statistics() const = 0;
  virtual void reset_statistics() = 0;
};

// The communicators of one rank by axis; null where the plan has no message along an axis.
struct CommunicatorTable {
  std::array<Communicator*, num_axes> by_axis{};
  Communicator& operator[](Axis axis) const { return *by_axis[static_cast<int>(axis)]; }
};

}  // namespace gptbench
