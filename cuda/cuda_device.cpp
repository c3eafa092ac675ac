#include "cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "base/text.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_stopwatch.h"
#include "cuda/kernels.h"
#include "cuda/staged_queue.h"
#include "cuda/stream_watch.h"

namespace gptbench {
namespace {

cudaDeviceProp properties_of(int ordinal) {
  cudaDeviceProp properties;
  GPTBENCH_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  return properties;
}

// Makes `ordinal` the current device before members are made on it.
int made_current(int ordinal) {
  GPTBENCH_CUDA(cudaSetDevice(ordinal));
  return ordinal;
}

// 13000: "13.0".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string gpu_identity(int ordinal) {
  std::string text;
  for (const char byte : properties_of(ordinal).uuid.bytes)
    text += printed("%02x", static_cast<unsigned int>(byte) & 0xffu);
  return text;
}

CudaDevice::CudaDevice(int ordinal, const CudaOptions& options)
    : messages_by_mpi_(options.messages_by_mpi), autotuning_(made_current(ordinal), options) {
  const cudaDeviceProp properties = properties_of(ordinal);
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  info_.kind = DeviceKind::cuda;
  info_.model = properties.name;
  info_.description = info_.model + " (GPU " + std::to_string(ordinal) + ", " +
                      std::to_string(properties.multiProcessorCount) + " SMs, compute capability " +
                      std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                      "), CUDA " + version_text(runtime) + " (driver " + version_text(driver) +
                      "), " + autotuning_.description();
  char bus_id[32];
  GPTBENCH_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, ordinal));
  info_.pci_bus_id = bus_id;
  info_.identity = gpu_identity(ordinal);
}

MemoryOffer CudaDevice::memory_offer() const {
  size_t available = 0, all = 0;
  GPTBENCH_CUDA(cudaMemGetInfo(&available, &all));
  return {static_cast<int64_t>(all), static_cast<int64_t>(available)};
}

void* CudaDevice::take(int64_t bytes) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, size);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // an answer, not an error that the next call reports
    return nullptr;
  }
  check_cuda(status, "cudaMalloc");
  // Which returns before it is done, on a stream that no other waits for.
  GPTBENCH_CUDA(cudaMemset(memory, 0, size));
  GPTBENCH_CUDA(cudaStreamSynchronize(nullptr));
  return memory;
}

namespace {

// Freeing memory waits for all streams. After an error they may hold messages whose peers wait for
// this rank, which would never leave then.
void leave_peers_after_an_error() {
  if (std::uncaught_exceptions() > 0) give_up_watched_streams("leaving the GPU after an error");
}

}  // namespace

void CudaDevice::give(void* memory, int64_t /*bytes*/) {
  leave_peers_after_an_error();
  cudaFree(memory);
}

void* CudaDevice::take_host(int64_t bytes) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, size, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  std::memset(memory, 0, size);
  return memory;
}

void CudaDevice::give_host(void* memory, int64_t /*bytes*/) {
  leave_peers_after_an_error();
  cudaFreeHost(memory);
}

std::unique_ptr<Queue> CudaDevice::make_queue(const std::string& /*name*/) {
  return std::make_unique<CudaQueue>(autotuning_.libraries());
}

std::unique_ptr<Queue> CudaDevice::make_message_queue(const std::string& name,
                                                      int64_t staging_bytes) {
  if (!messages_by_mpi_) return make_queue(name);
  return std::make_unique<StagedQueue>(staged_queues_, staging_bytes);
}

std::unique_ptr<Queue> CudaDevice::make_file_queue(const std::string& /*name*/,
                                                   int64_t staging_bytes) {
  return std::make_unique<StagedQueue>(staged_queues_, staging_bytes);
}

std::unique_ptr<Queue> CudaDevice::make_host_queue() {
  return std::make_unique<HostKernelQueue>();
}

std::unique_ptr<Event> CudaDevice::make_event() {
  return std::make_unique<CudaEvent>();
}

std::unique_ptr<Stopwatch> CudaDevice::make_stopwatch() {
  return std::make_unique<CudaStopwatch>();
}

void CudaDevice::upload(Queue& queue, void* device, const void* host, int64_t bytes) {
  staging_.upload(stream_of(queue), device, host, bytes);
}

void CudaDevice::download(Queue& queue, void* host, const void* device, int64_t bytes) {
  GPTBENCH_CUDA(cudaGetLastError());  // of launches, which report nothing themselves
  staging_.download(stream_of(queue), host, device, bytes);
}

void CudaDevice::fill_zero(Queue& queue, void* device, int64_t bytes) {
  if (bytes > 0)
    GPTBENCH_CUDA(cudaMemsetAsync(device, 0, static_cast<size_t>(bytes), stream_of(queue)));
}

// Also between the device and its page-locked host memory.
void CudaDevice::copy(Queue& queue, void* to, const void* from, int64_t bytes) {
  if (bytes > 0)
    GPTBENCH_CUDA(
        cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_of(queue)));
}

const KernelTable& CudaDevice::kernels(ComputeType compute) const {
  if (compute == ComputeType::fp64)
    throw Error(
        Exit::usage,
        "precision.compute='fp64' is not available on device='cuda' (fp32, bf16 and fp16 are); "
        "use run.device='ref'");
  return cuda_kernels(compute);
}

const KernelTable& CudaDevice::host_kernels(ComputeType compute) const {
  static const std::unique_ptr<Device> host = make_host_device(DeviceKind::host);
  return host->kernels(compute);
}

}  // namespace gptbench
