// Arrays on an emulated GPU of each rank's own, messages through the back end's NCCL communicator.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "cuda/backend.h"
#include "cuda/cuda_queue.h"
#include "emulated_gpu/messages/plan_of_messages.h"
#include "place.h"

namespace gptbench {
namespace {

class NcclPlace final : public Place {
 public:
  explicit NcclPlace(const MpiWorld& world) {
    setenv("GPTBENCH_EMULATED_GPUS", std::to_string(world.size()).c_str(), 1);
    EXPECT_EQ(cudaSetDevice(static_cast<int>(world.rank())), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(&host_, host_bytes, cudaHostAllocDefault), cudaSuccess);
  }
  ~NcclPlace() override { cudaFreeHost(host_); }

  std::unique_ptr<Communicator> communicator(MpiWorld& world, const Grid& grid,
                                             Axis axis) override {
    return make_nccl_communicator(world, plan_of_messages(grid, world.rank(), axis), axis);
  }
  std::unique_ptr<Queue> make_queue() override { return std::make_unique<CudaQueue>(); }
  void* allocate(int64_t bytes) override {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, static_cast<size_t>(bytes)), cudaSuccess);
    return memory;
  }
  void release(void* memory) override { cudaFree(memory); }
  void write(void* memory, const void* from, int64_t bytes) override {
    ASSERT_LE(bytes, host_bytes);
    if (bytes == 0) return;
    cudaDeviceSynchronize();
    std::memcpy(host_, from, static_cast<size_t>(bytes));
    cudaMemcpyAsync(memory, host_, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, nullptr);
    cudaDeviceSynchronize();
  }
  void read(void* to, const void* memory, int64_t bytes) override {
    ASSERT_LE(bytes, host_bytes);
    if (bytes == 0) return;
    cudaDeviceSynchronize();
    cudaMemcpyAsync(host_, memory, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, nullptr);
    cudaDeviceSynchronize();
    std::memcpy(to, host_, static_cast<size_t>(bytes));
  }
  bool sends_to_itself() const override { return false; }

 private:
  static constexpr int64_t host_bytes = 4 << 20;
  void* host_ = nullptr;
};

}  // namespace

std::unique_ptr<Place> make_place(const MpiWorld& world) {
  return std::make_unique<NcclPlace>(world);
}

}  // namespace gptbench
