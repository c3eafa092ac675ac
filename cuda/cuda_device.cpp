#include "cuda/cuda_device.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cuda/attention/limits.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_recording.h"
#include "cuda/cuda_stopwatch.h"
#include "cuda/kernels.h"
#include "cuda/staged_queue.h"
#include "plan/workspace.h"

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

int64_t scratch_bytes(const Plan& plan) {
  return plan.scratch < 0 ? 0 : plan.buffers[static_cast<size_t>(plan.scratch)].elements;
}

ComputeType compute_of(const GemmKey& key) {
  return key.type == DType::f32   ? ComputeType::fp32
         : key.type == DType::f16 ? ComputeType::fp16
                                  : ComputeType::bf16;  // fp8 beside bf16
}

}  // namespace

std::string gpu_identity(int ordinal) {
  std::string text;
  for (const char byte : properties_of(ordinal).uuid.bytes)
    text += printed("%02x", static_cast<unsigned int>(byte) & 0xffu);
  return text;
}

CudaDevice::CudaDevice(int ordinal, const CudaOptions& options)
    : options_(options), ordinal_(made_current(ordinal)), gemms_(options.tf32) {
  identity_ = gpu_identity(ordinal);
  if (options.attention != AttentionKernels::native)
    attention_ = make_cudnn_attention(
        {options.attention == AttentionKernels::cudnn, options.deterministic}, attention_obstacle_);
  if (options.attention == AttentionKernels::cudnn && attention_ == nullptr)
    throw Error(Exit::usage, attention_obstacle_);
}

std::string CudaDevice::model() const {
  return properties_of(ordinal_).name;
}

std::string CudaDevice::pci_bus_id() const {
  constexpr int longest = 32;
  char text[longest];
  GPTBENCH_CUDA(cudaDeviceGetPCIBusId(text, longest, ordinal_));
  return text;
}

std::string CudaDevice::description() const {
  const cudaDeviceProp properties = properties_of(ordinal_);
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  return std::string(properties.name) + " (GPU " + std::to_string(ordinal_) + ", " +
         std::to_string(properties.multiProcessorCount) + " SMs, compute capability " +
         std::to_string(properties.major) + "." + std::to_string(properties.minor) + "), CUDA " +
         version_text(runtime) + " (driver " + version_text(driver) + "), " + gemms_.description() +
         (attention_ != nullptr ? ", " + attention_->description() : "") +
         (gemms_.tf32() ? ", fp32 products in tf32" : "");
}

MemoryOffer CudaDevice::memory_offer() const {
  size_t available = 0, all = 0;
  GPTBENCH_CUDA(cudaMemGetInfo(&available, &all));
  return {static_cast<int64_t>(all), static_cast<int64_t>(available)};
}

void* CudaDevice::allocate(int64_t bytes) {
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

void CudaDevice::release(void* memory, int64_t /*bytes*/) {
  cudaFree(memory);
}

void* CudaDevice::allocate_host(int64_t bytes) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, size, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  std::memset(memory, 0, size);
  return memory;
}

void CudaDevice::release_host(void* memory, int64_t /*bytes*/) {
  cudaFreeHost(memory);
}

std::unique_ptr<Queue> CudaDevice::make_queue(const std::string& /*name*/) {
  return std::make_unique<CudaQueue>(CudaLibraries{&gemms_, attention_.get()});
}

std::unique_ptr<Queue> CudaDevice::make_message_queue(const std::string& name,
                                                      int64_t staging_bytes) {
  if (!options_.messages_by_mpi) return make_queue(name);
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

void CudaDevice::begin_recording(Queue& queue) {
  begin_capture(stream_of(queue));
}

std::unique_ptr<Recording> CudaDevice::end_recording(Queue& queue) {
  return std::make_unique<CudaRecording>(stream_of(queue));
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

std::string CudaDevice::measure_choices(const Plan& plan) {
  const cudaDeviceProp gpu = properties_of(ordinal_);
  check_attention(plan, gpu.name, static_cast<int64_t>(gpu.sharedMemPerBlockOptin));
  const std::vector<GemmKey> keys = gemms_of(plan);
  if (keys.empty()) return choices();
  CudaQueue queue;  // without libraries: what they are compared with is our own
  const ComputeType compute = compute_of(keys.front());
  gemms_.search(keys, gemm_workspace_bytes, queue, cuda_kernels(compute));
  if (attention_ != nullptr)
    attention_->search(attentions_of(plan), scratch_bytes(plan), queue, cuda_kernels(compute));
  queue.synchronize();
  return choices();
}

void CudaDevice::use_choices(const std::string& text) {
  if (text.find("gemm_library=") == std::string::npos)
    throw Error(Exit::io,
                "no choices of GEMM algorithms in what was given; run.algorithms names a result of "
                "device = 'cuda', or is '' for a timed search");
  GemmChoices chosen;
  chosen.library = gemms_.choices().library;
  chosen.add(text);
  AttentionChoices attention;
  if (attention_ != nullptr) {
    attention.library = attention_->choices().library;
    attention.add(text);
    attention_->choices() = attention;
    attention_->forget_plans();
  }
  gemms_.choices() = chosen;
  gemms_.forget_plans();
}

std::string CudaDevice::choices() {
  const std::string gemms = gemms_.choices().text();
  if (attention_ != nullptr) return gemms + attention_->choices().text();
  return attention_obstacle_.empty() ? gemms
                                     : gemms + "attention=native, " + attention_obstacle_ + "\n";
}

}  // namespace gptbench
