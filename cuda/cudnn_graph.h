// Graphs of operations as cuDNN's back-end interface has them: tensors of four dimensions,
// operations between them, and the plans by which the library would execute the whole.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "cuda/cudnn_library.h"

namespace gptbench {

// A descriptor of the library; null where it could not be made.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  // Attributes and finalisation. The first failure stays, and nothing is done after it.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other);
  void set_number(cudnnBackendAttributeName_t name, int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void finalize();
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  void note(cudnnStatus_t status);

  const Cudnn& cudnn_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  std::string error_;
};

// A way to execute a graph.
struct CudnnPlan {
  std::unique_ptr<CudnnDescriptor> descriptor;
  int64_t workspace_bytes = 0;  // of the library's own
};

// The GPU that plans are made for: a handle, or where there is no GPU the properties of one.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

class CudnnGraph {
 public:
  using Sizes = std::array<int64_t, 4>;
  using Tensor = int64_t;  // its unique id

  explicit CudnnGraph(const Cudnn& cudnn) : cudnn_(cudnn) {}

  // Parts of each sequence that a GEMM may skip: rows of c, columns of c, and what is summed over,
  // from the lengths in an array on. none: all of them count.
  struct Extents {
    Tensor m = none, n = none, k = none;
  };
  static constexpr Tensor none = 0;

  // An array in memory; one of lengths of sequences; between operations alone; a float that the
  // call brings along.
  Tensor array(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);
  Tensor lengths(int64_t B);  // [B], int32
  Tensor between(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);
  Tensor scalar();

  // Where the result of an operation goes: an array, or a new tensor between operations alone, of a
  // type and with row-major sizes.
  struct Result {
    Result(Tensor array) : into(array) {}
    Result(cudnnDataType_t new_type, const Sizes& new_sizes) : type(new_type), sizes(new_sizes) {}
    Tensor into = none;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    Sizes sizes{};
  };
  // Each operation returns its result. y = mode(x), mode(x, b), mode(x, b, t), computed in the type
  // of a new y where that is whole or logical, else in float; `axis` is that of an index.
  Tensor pointwise(cudnnPointwiseMode_t mode, const Result& y, Tensor x, Tensor b = none,
                   Tensor t = none, int64_t axis = -1);
  // y = place along `axis`.
  Tensor index(const Result& y, Tensor like, int64_t axis) {
    return pointwise(CUDNN_POINTWISE_GEN_INDEX, y, like, none, none, axis);
  }
  // Multiplies over the last two dimensions.
  Tensor matmul(const Result& y, Tensor a, Tensor b, const Extents& extents);
  Tensor reduce(cudnnReduceTensorOp_t operation, const Result& y, Tensor x);
  void reshape(Tensor x, Tensor y);

  // At most `most` plans of those that the library's heuristics propose, best first, that need no
  // more than workspace_bytes. None where the library refuses the graph: error() says why.
  std::vector<CudnnPlan> plans(const CudnnTarget& target, int64_t workspace_bytes, size_t most);
  const std::string& error() const { return error_; }

 private:
  Tensor add_tensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides, bool in_memory,
                    bool by_value, int64_t alignment = 16);
  using Operand = std::pair<cudnnBackendAttributeName_t, Tensor>;  // none: left out
  // A descriptor that says how an operation is done.
  CudnnDescriptor& helper(cudnnBackendDescriptorType_t type);
  void add_operation(cudnnBackendDescriptorType_t type, std::initializer_list<Operand> operands,
                     cudnnBackendAttributeName_t how_name = {},
                     const CudnnDescriptor* how = nullptr);
  Tensor made(const Result& result);
  void finish(CudnnDescriptor& descriptor);
  const CudnnDescriptor& tensor(Tensor t) const { return *tensors_[static_cast<size_t>(t - 1)]; }

  const Cudnn& cudnn_;
  std::vector<std::unique_ptr<CudnnDescriptor>> tensors_, helpers_, operations_;
  std::string error_;
};

cudnnDataType_t cudnn_type_of(DType type);

// Executes `plan` on the handle's stream: array i of `tensors` lies at pointers[i]. Returns what
// the library answers.
cudnnStatus_t execute(const Cudnn& cudnn, cudnnHandle_t handle, const CudnnPlan& plan,
                      const std::vector<CudnnGraph::Tensor>& tensors,
                      const std::vector<void*>& pointers, void* workspace);

}  // namespace gptbench
