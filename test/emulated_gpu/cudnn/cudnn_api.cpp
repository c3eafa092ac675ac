// The functions of cuDNN that cuda/ opens by name.
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>

#include "emulated_gpu/cudnn/backend.h"
#include "emulated_gpu/gpu.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  bool destroyed = false;
};

namespace gptbench::emulation {
namespace {

std::mutex& mutex() {
  static std::mutex* const one = new std::mutex;
  return *one;
}
// All that were ever made: kept, so that a use after destruction is seen.
std::set<const Descriptor*>& descriptors() {
  static std::set<const Descriptor*>* const all = new std::set<const Descriptor*>;
  return *all;
}

struct Call {
  std::shared_ptr<const Graph> graph;
  std::map<int64_t, void*> addresses;
  std::map<int64_t, float> values;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

void check_memory(const Call& call, const char* when) {
  for (const auto& [id, address] : call.addresses) {
    const Tensor& t = call.graph->tensors.at(id);
    const size_t bytes = static_cast<size_t>(t.extent() * bytes_of(t.type));
    if (!is_device_memory(address, bytes))
      misuse("cudnnBackendExecute: tensor %lld (%p) is not %zu bytes of device memory %s",
             static_cast<long long>(id), address, bytes, when);
    if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(t.alignment) != 0)
      misuse("cudnnBackendExecute: tensor %lld (%p) is not aligned to %lld bytes",
             static_cast<long long>(id), address, static_cast<long long>(t.alignment));
  }
  if (call.workspace_bytes > 0 &&
      !is_device_memory(call.workspace, static_cast<size_t>(call.workspace_bytes)))
    misuse("cudnnBackendExecute: the workspace (%p) is not %lld bytes of device memory %s",
           call.workspace, static_cast<long long>(call.workspace_bytes), when);
}

void run(const Call& call) {
  check_memory(call, "when it runs");
  if (call.workspace_bytes > 0)
    std::memset(call.workspace, 0xff, static_cast<size_t>(call.workspace_bytes));
  evaluate(*call.graph, call.addresses, call.values);
}

}  // namespace

Descriptor& checked(cudnnBackendDescriptor_t handle, const char* call) {
  const std::lock_guard<std::mutex> lock(mutex());
  Descriptor* const d = static_cast<Descriptor*>(handle);
  if (descriptors().count(d) == 0) misuse("%s: %p is no descriptor", call, handle);
  if (d->destroyed) misuse("%s of a descriptor that was destroyed", call);
  return *d;
}

}  // namespace gptbench::emulation

using namespace gptbench::emulation;

extern "C" {

size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (CUDNN_STATUS_CATEGORY(static_cast<int>(status))) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::snprintf(message, bytes, "%s", last_error().c_str());
  last_error().clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  static auto* const kept = new std::deque<cudnnContext>;  // as descriptors are
  *handle = &kept->emplace_back();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (handle->destroyed) misuse("cudnnDestroy of a handle that was destroyed");
  handle->destroyed = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (handle->destroyed) misuse("cudnnSetStream of a handle that was destroyed");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!has_rules(type)) return refused(CUDNN_STATUS_NOT_SUPPORTED, "descriptors of this type");
  auto* const made = new Descriptor;
  made->type = type;
  *descriptor = made;
  const std::lock_guard<std::mutex> lock(mutex());
  descriptors().insert(made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  Descriptor& d = checked(descriptor, "cudnnBackendDestroyDescriptor");
  d = Descriptor{};
  d.destroyed = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  return set_attribute(checked(descriptor, "cudnnBackendSetAttribute"), name, type, count, values);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return finalize(checked(descriptor, "cudnnBackendFinalize"));
}

// Results of heuristics, one configuration an engine, and the workspace of a plan.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t* count, void* values) {
  const Descriptor& d = checked(descriptor, "cudnnBackendGetAttribute");
  if (!d.finalized) return refused(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "an attribute of");
  if (d.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS &&
      type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    *count = num_engines;
    auto* const results = static_cast<cudnnBackendDescriptor_t*>(values);
    for (int i = 0; i < num_engines && i < wanted; ++i) {
      Descriptor& result = checked(results[i], "cudnnBackendGetAttribute");
      if (result.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        return refused(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "results are configurations");
      result.graph = d.graph;
      result.engine = i;
      result.finalized = true;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 && wanted == 1) {
    *count = 1;
    const int64_t bytes = workspace_of(*d.graph, d.engine);
    std::memcpy(values, &bytes, sizeof bytes);
    return CUDNN_STATUS_SUCCESS;
  }
  return refused(CUDNN_STATUS_NOT_SUPPORTED, "attribute " + std::to_string(name));
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (handle->destroyed) misuse("cudnnBackendExecute with a handle that was destroyed");
  const Descriptor& p = checked(plan, "cudnnBackendExecute");
  const Descriptor& given = checked(pack, "cudnnBackendExecute");
  if (!p.finalized || !given.finalized || p.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      given.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return refused(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a plan and what it is given");
  const auto ids = given.values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = given.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != pointers.size())
    return refused(CUDNN_STATUS_BAD_PARAM, "as many addresses as tensors");
  Call call;
  call.graph = p.graph;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto tensor = p.graph->tensors.find(ids[i]);
    if (tensor == p.graph->tensors.end() || tensor->second.is_virtual)
      return refused(CUDNN_STATUS_BAD_PARAM, "an address of no array of the graph");
    if (pointers[i] == nullptr) return refused(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "an array");
    if (tensor->second.by_value)
      std::memcpy(&call.values[ids[i]], pointers[i], sizeof(float));
    else
      call.addresses[ids[i]] = pointers[i];
  }
  for (const auto& [id, tensor] : p.graph->tensors)
    if (!tensor.is_virtual && call.values.count(id) + call.addresses.count(id) == 0)
      return refused(CUDNN_STATUS_BAD_PARAM, "an array without an address");
  call.workspace = given.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  call.workspace_bytes = workspace_of(*p.graph, p.engine);
  check_memory(call, "when called");
  load_code("cudnnBackendExecute " + std::to_string(reinterpret_cast<uintptr_t>(&p)));
  enqueue(handle->stream, "cudnnBackendExecute", [call] {
    run(call);
    return true;
  });
  return CUDNN_STATUS_SUCCESS;
}
}
