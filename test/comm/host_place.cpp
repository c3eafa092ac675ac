#include <cstdlib>
#include <cstring>

#include "device/host_queue.h"
#include "place.h"

namespace gptbench {
namespace {

class HostPlace final : public Place {
 public:
  std::unique_ptr<Communicator> communicator(MpiWorld& world, const Grid& grid,
                                             Axis axis) override {
    return world.make_communicator(grid, axis);
  }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<HostQueue>(queues_); }
  void* allocate(int64_t bytes) override { return std::malloc(static_cast<size_t>(bytes)); }
  void release(void* memory) override { std::free(memory); }
  void write(void* memory, const void* from, int64_t bytes) override { copy(memory, from, bytes); }
  void read(void* to, const void* memory, int64_t bytes) override { copy(to, memory, bytes); }
  bool sends_to_itself() const override { return true; }

 private:
  void copy(void* to, const void* from, int64_t bytes) {
    for (HostQueue* queue : queues_) queue->synchronize();
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  std::vector<HostQueue*> queues_;
};

}  // namespace

std::unique_ptr<Place> make_place(const MpiWorld&) {
  return std::make_unique<HostPlace>();
}

}  // namespace gptbench
