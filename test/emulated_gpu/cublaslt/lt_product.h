// What tests of the emulated cuBLASLt share: arrays of the device, a product with its descriptors,
// and the same product in double.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/fp8.h"

namespace gptbench::test {

inline double value_of(cudaDataType_t type, const std::vector<char>& bytes, int64_t i) {
  const char* const base = bytes.data();
  const auto read = [&](auto element) {
    std::memcpy(&element, base + i * static_cast<int64_t>(sizeof element), sizeof element);
    return element;
  };
  switch (type) {
    case CUDA_R_16BF:
      return static_cast<double>(static_cast<float>(read(bfloat16{})));
    case CUDA_R_16F:
      return static_cast<double>(static_cast<float>(read(float16{})));
    case CUDA_R_8F_E4M3:
      return static_cast<double>(fp8_decode(read(uint8_t{}), fp8_format(DType::fp8_e4m3)));
    case CUDA_R_8F_E5M2:
      return static_cast<double>(fp8_decode(read(uint8_t{}), fp8_format(DType::fp8_e5m2)));
    default:
      return static_cast<double>(read(0.0f));
  }
}
inline int64_t size_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : type == CUDA_R_16BF || type == CUDA_R_16F ? 2 : 1;
}
// Half a unit in the last place, relative.
inline double rounding_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 0x1p-24 : type == CUDA_R_16BF ? 0x1p-8 : 0x1p-11;
}

inline std::vector<char> encoded(cudaDataType_t type, const std::vector<float>& values) {
  std::vector<char> bytes;
  const auto append = [&](const auto element) {
    const char* const at = reinterpret_cast<const char*>(&element);
    bytes.insert(bytes.end(), at, at + sizeof element);
  };
  for (const float value : values) switch (type) {
      case CUDA_R_16BF:
        append(bfloat16(value));
        break;
      case CUDA_R_16F:
        append(float16(value));
        break;
      case CUDA_R_8F_E4M3:
        append(fp8_encode(value, fp8_format(DType::fp8_e4m3)));
        break;
      case CUDA_R_8F_E5M2:
        append(fp8_encode(value, fp8_format(DType::fp8_e5m2)));
        break;
      default:
        append(value);
    }
  return bytes;
}

// Numbers in (-1, 1), the same ones for the same seed.
inline std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761u + 12345u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

inline cudaStream_t stream() {
  static const cudaStream_t one = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return one;
}

class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<char>& bytes) : size_(bytes.size()) {
    EXPECT_EQ(cudaMalloc(&device_, size_), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(&host_, size_, cudaHostAllocDefault), cudaSuccess);
    write(bytes);
  }
  DeviceBytes(cudaDataType_t type, int64_t count, uint32_t seed)
      : DeviceBytes(encoded(type, numbers(count, seed))) {}
  ~DeviceBytes() {
    cudaFree(device_);
    cudaFreeHost(host_);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  void write(const std::vector<char>& bytes) {
    std::memcpy(host_, bytes.data(), size_);
    cudaMemcpyAsync(device_, host_, size_, cudaMemcpyHostToDevice, stream());
    cudaStreamSynchronize(stream());
  }
  std::vector<char> read() const {
    cudaMemcpyAsync(host_, device_, size_, cudaMemcpyDeviceToHost, stream());
    cudaStreamSynchronize(stream());
    const char* const begin = static_cast<const char*>(host_);
    return {begin, begin + size_};
  }
  char* data() const { return static_cast<char*>(device_); }

 private:
  size_t size_;
  void *device_ = nullptr, *host_ = nullptr;
};

inline cublasLtHandle_t handle() {
  static const cublasLtHandle_t one = [] {
    cublasLtHandle_t made = nullptr;
    cublasLtCreate(&made);
    return made;
  }();
  return one;
}

struct Shape {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  int64_t padding = 0;  // of leading dimensions
};

// D = A B + beta C with descriptors of its own; members may be changed before describe().
struct LtProduct {
  LtProduct(const Shape& shape, cudaDataType_t in, cudaDataType_t out)
      : s(shape), a_type(in), b_type(in), d_type(out) {}
  ~LtProduct() {
    cublasLtMatmulDescDestroy(operation);
    for (const cublasLtMatrixLayout_t layout : {a, b, d}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
  }
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  int64_t lda() const { return (s.transpose_a ? s.k : s.m) + s.padding; }
  int64_t ldb() const { return (s.transpose_b ? s.n : s.k) + s.padding; }
  int64_t ldd() const { return s.m + s.padding; }
  int64_t a_count() const { return lda() * (s.transpose_a ? s.m : s.k); }
  int64_t b_count() const { return ldb() * (s.transpose_b ? s.k : s.n); }
  int64_t d_count() const { return ldd() * s.n; }

  template <class T>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
  }
  template <class T>
  cublasStatus_t prefer(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  }

  void describe() {
    cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    const auto layout = [](cublasLtMatrixLayout_t& made, cudaDataType_t type, int64_t rows,
                           int64_t columns, int64_t ld) {
      cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                 static_cast<uint64_t>(columns), ld);
    };
    layout(a, a_type, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, lda());
    layout(b, b_type, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, ldb());
    layout(d, d_type, s.m, s.n, ldd());
    cublasLtMatmulPreferenceCreate(&preference);
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  }

  cublasStatus_t propose(std::vector<cublasLtMatmulHeuristicResult_t>& found, int most = 32) {
    found.resize(static_cast<size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle(), operation, a, b, d, d, preference, most, found.data(), &count);
    found.resize(static_cast<size_t>(count));
    return status;
  }

  cublasStatus_t run(const void* at_a, const void* at_b, const void* at_c, void* at_d,
                     const cublasLtMatmulAlgo_t* algo, float beta = 0.0f,
                     void* workspace = nullptr) {
    const float alpha = 1.0f;
    return cublasLtMatmul(handle(), operation, &alpha, at_a, a, at_b, b, &beta, at_c, d, at_d, d,
                          algo, workspace, workspace == nullptr ? 0 : workspace_bytes, stream());
  }

  // Element (i, j) of A B, and of |A| |B|.
  double sum(const std::vector<char>& as, const std::vector<char>& bs, int64_t i, int64_t j,
             double& magnitude) const {
    double total = 0.0;
    magnitude = 0.0;
    for (int64_t l = 0; l < s.k; ++l) {
      const double x = gptbench::test::value_of(a_type, as,
                                                s.transpose_a ? l + i * lda() : i + l * lda()),
                   y = gptbench::test::value_of(b_type, bs,
                                                s.transpose_b ? j + l * ldb() : l + j * ldb());
      total += x * y;
      magnitude += std::abs(x * y);
    }
    return total;
  }

  Shape s;
  cudaDataType_t a_type, b_type, d_type;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  uint64_t workspace_bytes = 1 << 20;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
};

}  // namespace gptbench::test
