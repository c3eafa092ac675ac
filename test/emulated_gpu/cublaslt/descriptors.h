// The descriptors of the emulated cuBLASLt. As in the library, setting an attribute checks its name
// and size alone; what the values mean is judged when a product is asked for (problem.h).
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace gptbench::emulation {

// Values of attributes by number, as the caller's bytes.
template <int count>
struct Attributes {
  std::array<uint64_t, count> values{};

  template <class T>
  T get(int attribute) const {
    static_assert(sizeof(T) <= sizeof(uint64_t), "attributes have at most 8 bytes");
    T value;
    std::memcpy(&value, &values[static_cast<size_t>(attribute)], sizeof value);
    return value;
  }
  template <class T>
  void set(int attribute, T value) {
    std::memcpy(&values[static_cast<size_t>(attribute)], &value, sizeof value);
  }
};

constexpr int operation_attributes = 39;
constexpr int preference_attributes = 13;

struct Operation : Attributes<operation_attributes> {
  Operation(cublasComputeType_t compute, cudaDataType_t scale);
};

struct Preference : Attributes<preference_attributes> {
  Preference();
};

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t ld;  // elements from one column to the next
};

// What a handle stands for; null for null; ends the process where it is none, or was destroyed.
const Operation* operation_of(cublasLtMatmulDesc_t handle, const char* call);
const Preference* preference_of(cublasLtMatmulPreference_t handle, const char* call);
const Layout* layout_of(cublasLtMatrixLayout_t handle, const char* call);
// Whether cublasLtCreate made it; ends the process where it was destroyed.
bool is_handle(cublasLtHandle_t handle, const char* call);

}  // namespace gptbench::emulation
