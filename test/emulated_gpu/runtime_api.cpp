// The CUDA runtime as far as cuda/ and its tests use it. Wrong uses that the runtime would answer
// with undefined behaviour end the process; others with the runtime's own error.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include "emulated_gpu/graph.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/streams.h"

using namespace gptbench::emulation;

namespace {

cudaError_t last_error = cudaSuccess;
int current_device = 0;

cudaError_t said(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

// GPUs that this process sees; the ranks of a node take them in turn.
int devices() {
  const char* const text = std::getenv("GPTBENCH_EMULATED_GPUS");
  return text != nullptr ? std::atoi(text) : 1;
}

CUevent_st* alive(CUevent_st* event, const char* call) {
  if (event == nullptr || event->destroyed) misuse("%s of an event that is none", call);
  return event;
}

// A captured stream takes no call that waits for it.
bool breaks_capture(CUstream_st* stream) {
  if (stream->capture == nullptr) return false;
  stream->capture->broken = true;
  return true;
}

cudaError_t record(CUevent_st* event, CUstream_st* stream, bool external) {
  alive(event, "cudaEventRecord");
  stream = checked(stream, "cudaEventRecord");
  if (stream->capture == nullptr) {
    event->capture = nullptr;
    event->point = append_point(stream);
  } else if (external) {
    add_node(*stream, "cudaEventRecord", nullptr, event);
    event->capture = nullptr;
  } else {
    record_in_capture(*stream, *event);
  }
  return cudaSuccess;
}

void check_side(const void* address, size_t bytes, bool device, const char* which) {
  if (device && !is_device_memory(address, bytes))
    misuse("cudaMemcpyAsync: %s %p is not %zu bytes of device memory", which, address, bytes);
  if (!device && !is_pinned_memory(address, bytes))
    misuse("cudaMemcpyAsync: %s %p is not %zu bytes of page-locked memory", which, address, bytes);
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t status = last_error;
  last_error = cudaSuccess;
  return status;
}
const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t status) {
  return cudaGetErrorName(status);
}

// ---- the device
// ----------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int* count) {
  connections();
  *count = devices();
  return said(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return said(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= devices()) return said(cudaErrorInvalidDevice);
  *properties = cudaDeviceProp{};
  std::strcpy(properties->name, "emulated GPU");
  std::memcpy(properties->uuid.bytes, "gptbench", 8);
  properties->uuid.bytes[15] = static_cast<char>(device);
  properties->totalGlobalMem = device_capacity();
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = 3;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->sharedMemPerBlock = 48 * 1024;
  properties->sharedMemPerBlockOptin = 227 * 1024;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// ---- memory
// --------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t* available, size_t* all) {
  *available = device_free();
  *all = device_capacity();
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = allocate_device(bytes);
  return said(*memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  wait_for_all();
  free_device(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = allocate_pinned(bytes);
  return said(*memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  wait_for_all();
  free_pinned(memory);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (!is_device_memory(memory, bytes))
    misuse("cudaMemset: %p is not %zu bytes of device memory", memory, bytes);
  enqueue(stream, "cudaMemset", [=] {
    fill_device(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}
// On device memory it returns before it is done.
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}
// Pageable memory, which makes the copy one that the host waits for, is taken for an oversight.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind == cudaMemcpyDefault) {
    check_side(to, bytes, !is_pinned_memory(to, bytes), "the target");
    check_side(from, bytes, !is_pinned_memory(from, bytes), "the source");
  } else {
    check_side(to, bytes, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
               "the target");
    check_side(from, bytes, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
               "the source");
  }
  enqueue(stream, "cudaMemcpyAsync", [=] {
    std::memmove(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}

// ---- streams
// -------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking)
    misuse("a stream that waits for the default stream is not emulated");
  *stream = new_stream();
  return cudaSuccess;
}
// What it holds still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  checked(stream, "cudaStreamDestroy")->destroyed = true;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream = checked(stream, "cudaStreamSynchronize");
  if (breaks_capture(stream)) return said(cudaErrorStreamCaptureUnsupported);
  wait_for(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  wait_for_all();
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  stream = checked(stream, "cudaStreamQuery");
  if (breaks_capture(stream)) return said(cudaErrorStreamCaptureUnsupported);
  return said(is_idle(stream) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream = checked(stream, "cudaStreamWaitEvent");
  alive(event, "cudaStreamWaitEvent");
  if (event->capture == nullptr && event->point == nullptr) return cudaSuccess;  // never recorded
  if (event->capture != nullptr || stream->capture != nullptr)
    return said(wait_in_capture(*stream, *event));
  append_wait(stream, event->point);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  enqueue(stream, "cudaLaunchHostFunc", [=] {
    function(data);
    return true;
  });
  return cudaSuccess;
}

// ---- events
// --------------------------------------------------------------------------------------

// An event's memory is kept, so that a use after destruction is seen.
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  static std::mutex mutex;
  static auto* const kept = new std::deque<CUevent_st>;
  const std::lock_guard<std::mutex> lock(mutex);
  *event = &kept->emplace_back();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  alive(event, "cudaEventDestroy")->destroyed = true;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record(event, stream, false);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordExternal &&
      checked(stream, "cudaEventRecordWithFlags")->capture == nullptr)
    return said(cudaErrorIllegalState);
  return record(event, stream, flags == cudaEventRecordExternal);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  alive(event, "cudaEventQuery");
  if (event->capture != nullptr) {
    event->capture->broken = true;
    return said(cudaErrorCapturedEvent);
  }
  return said(is_reached(event->point) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  alive(event, "cudaEventSynchronize");
  if (event->capture != nullptr) {
    event->capture->broken = true;
    return said(cudaErrorCapturedEvent);
  }
  wait_for(event->point);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  for (CUevent_st* const event :
       {alive(begin, "cudaEventElapsedTime"), alive(end, "cudaEventElapsedTime")}) {
    if (!event->timed || event->point == nullptr) return said(cudaErrorInvalidResourceHandle);
    if (!event->point->reached) return said(cudaErrorNotReady);
  }
  *ms = static_cast<float>(1e3 * (end->point->time_s - begin->point->time_s));
  return cudaSuccess;
}

// ---- graphs
// --------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeRelaxed)
    misuse("captures other than relaxed ones are not emulated");
  if (stream == nullptr) return said(cudaErrorStreamCaptureUnsupported);
  if (checked(stream, "cudaStreamBeginCapture")->capture != nullptr)
    return said(cudaErrorIllegalState);
  begin_capture(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  stream = checked(stream, "cudaStreamEndCapture");
  if (stream->capture == nullptr) return said(cudaErrorIllegalState);
  if (stream->capture->origin != stream) return said(cudaErrorStreamCaptureUnmatched);
  auto made = std::make_unique<CUgraph_st>();
  const cudaError_t status = end_capture(*stream, made->nodes);
  if (status == cudaSuccess) *graph = made.release();
  return said(status);
}
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  static std::mutex mutex;
  static auto* const kept = new std::deque<CUgraphExec_st>;  // as events
  const std::lock_guard<std::mutex> lock(mutex);
  *executable = &kept->emplace_back();
  (*executable)->nodes = std::make_shared<const std::vector<Node>>(graph->nodes);
  return cudaSuccess;
}
#endif
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable->nodes == nullptr) misuse("cudaGraphUpload of a graph that was destroyed");
  checked(stream, "cudaGraphUpload");
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable->nodes == nullptr) misuse("cudaGraphLaunch of a graph that was destroyed");
  executable->launch(*checked(stream, "cudaGraphLaunch"));
  return cudaSuccess;
}
// A replay under way goes on to its end.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return cudaSuccess;
  if (executable->nodes == nullptr) misuse("cudaGraphExecDestroy of a graph that was destroyed");
  executable->nodes = nullptr;
  return cudaSuccess;
}
}
