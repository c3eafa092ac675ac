// Where the arrays of the tests of communicators lie and who carries their messages: host and MPI
// (host_place.cpp), or an emulated GPU and NCCL (test/emulated_gpu/messages/nccl_place.cpp).
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi_world.h"

namespace gptbench {

class Place {
 public:
  virtual ~Place() = default;
  // Collective. Collectives along the axis; and messages to the next rank of the group and from the
  // one before, in a ring, for every tag.
  virtual std::unique_ptr<Communicator> communicator(MpiWorld& world, const Grid& grid,
                                                     Axis axis) = 0;
  // Driven together.
  virtual std::unique_ptr<Queue> make_queue() = 0;
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* memory) = 0;
  // Wait for all queues.
  virtual void write(void* memory, const void* from, int64_t bytes) = 0;
  virtual void read(void* to, const void* memory, int64_t bytes) = 0;
  // Whether a group of one rank can send to itself.
  virtual bool sends_to_itself() const = 0;
};
std::unique_ptr<Place> make_place(const MpiWorld& world);

// An array there.
template <class T>
class Placed {
 public:
  Placed(Place& place, const std::vector<T>& values)
      : place_(place), count_(values.size()), memory_(place.allocate(bytes() + 1)) {
    place_.write(memory_, values.data(), bytes());
  }
  ~Placed() { place_.release(memory_); }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  T* data() const { return static_cast<T*>(memory_); }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    place_.read(values.data(), memory_, bytes());
    return values;
  }

 private:
  int64_t bytes() const { return static_cast<int64_t>(count_ * sizeof(T)); }

  Place& place_;
  size_t count_;
  void* memory_;
};

// All ranks along one axis.
inline Grid data_grid(const MpiWorld& world) {
  return {1, 1, 1, world.size()};
}

}  // namespace gptbench
