#include "emulated_gpu/cublaslt/descriptors.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

// Bytes of each attribute; 0: there is none of that number. As cuBLASLt 13.1 answers.
constexpr std::array<uint8_t, operation_attributes> operation_sizes = {
    4, 4, 4, 4, 4, 4, 4, 4, 8, 0, 8, 8, 8, 8, 8, 4, 0, 8, 8, 8,
    8, 8, 4, 8, 8, 1, 4, 0, 0, 0, 0, 4, 4, 4, 4, 4, 8, 4, 8};
constexpr std::array<uint8_t, preference_attributes> preference_sizes = {4, 8, 0, 4, 0, 4, 4,
                                                                         4, 4, 4, 0, 0, 8};

// Objects that exist, by the address that stands for them. Those that were destroyed are kept
// without content, so that a later use is seen and no address is given out twice.
template <class T>
class Objects {
 public:
  template <class Handle>
  void add(Handle& handle, const T& object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto place = std::make_unique<Place>();
    place->object = std::make_unique<T>(object);
    handle = reinterpret_cast<Handle>(place.get());
    places_.emplace(handle, std::move(place));
  }
  T* find(const void* handle, const char* call) {
    if (handle == nullptr) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(handle);
    if (found == places_.end()) misuse("%s: %p is no descriptor of that kind", call, handle);
    if (found->second->object == nullptr) misuse("%s of a descriptor that was destroyed", call);
    return found->second->object.get();
  }
  void remove(const void* handle, const char* call) {
    if (find(handle, call) == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    places_[handle]->object.reset();
  }

 private:
  struct Place {
    std::unique_ptr<T> object;
  };
  std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<Place>> places_;
};

template <class T>
Objects<T>& all() {
  static Objects<T>* const objects = new Objects<T>;  // outlives every static object
  return *objects;
}

struct Context {};

template <class T, size_t count>
cublasStatus_t set_attribute(T* object, const std::array<uint8_t, count>& sizes, int attribute,
                             const void* value, size_t bytes) {
  if (object == nullptr || value == nullptr || attribute < 0 ||
      attribute >= static_cast<int>(count) || bytes == 0 ||
      bytes != sizes[static_cast<size_t>(attribute)])
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&object->values[static_cast<size_t>(attribute)], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

Operation::Operation(cublasComputeType_t compute, cudaDataType_t scale) {
  set<int32_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute);
  set<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
  set<int32_t>(CUBLASLT_MATMUL_DESC_FILL_MODE, CUBLAS_FILL_MODE_FULL);
  set<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  set<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, -1);
  set<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, -1);
}

Preference::Preference() {
  set<uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_MASK);
  for (const int matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set<uint32_t>(matrix, 256);
  set<uint64_t>(CUBLASLT_MATMUL_PREF_IMPL_MASK, ~uint64_t{0});
}

const Operation* operation_of(cublasLtMatmulDesc_t handle, const char* call) {
  return all<Operation>().find(handle, call);
}
const Preference* preference_of(cublasLtMatmulPreference_t handle, const char* call) {
  return all<Preference>().find(handle, call);
}
const Layout* layout_of(cublasLtMatrixLayout_t handle, const char* call) {
  return all<Layout>().find(handle, call);
}
bool is_handle(cublasLtHandle_t handle, const char* call) {
  return all<Context>().find(handle, call) != nullptr;
}

}  // namespace gptbench::emulation

using namespace gptbench::emulation;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  all<Context>().add(*handle, Context{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  all<Context>().remove(handle, "cublasLtDestroy");
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the requested functionality is not supported";
    default:
      return "unrecognized status";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  all<Operation>().add(*handle, Operation(compute, scale));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  all<Operation>().remove(handle, "cublasLtMatmulDescDestroy");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return set_attribute(all<Operation>().find(handle, "cublasLtMatmulDescSetAttribute"),
                       operation_sizes, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  all<Layout>().add(*handle, Layout{type, rows, columns, ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  all<Layout>().remove(handle, "cublasLtMatrixLayoutDestroy");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  all<Preference>().add(*handle, Preference());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  all<Preference>().remove(handle, "cublasLtMatmulPreferenceDestroy");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return set_attribute(all<Preference>().find(handle, "cublasLtMatmulPreferenceSetAttribute"),
                       preference_sizes, attribute, value, bytes);
}
}
