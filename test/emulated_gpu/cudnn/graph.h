// Graphs of operations as the emulated cuDNN understands them: those that attention is made of,
// over tensors of four dimensions. The real library takes patterns of them alone; here any graph
// runs, operation by operation.
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

namespace gptbench::emulation {

using Sizes = std::array<int64_t, 4>;

struct Tensor {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Sizes sizes{}, strides{};
  int64_t alignment = 0;    // bytes
  bool is_virtual = false;  // lies nowhere in memory
  bool by_value = false;    // lies in the host's memory, read in the call

  int64_t elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  // From the first to the last, with what lies between.
  int64_t extent() const;
  int64_t offset(const Sizes& place) const;
};

struct Operation {
  enum class Kind { pointwise, matmul, reduction, reshape };
  Kind kind = Kind::pointwise;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  int64_t axis = -1;  // of places
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  std::vector<Tensor> inputs;
  // matmul: lengths by sequence of rows of C, columns of C and what is summed over. What lies
  // beyond them in C is undefined.
  std::unique_ptr<Tensor> m, n, k;
  Tensor y;
};

// Null, or why the shapes do not go together.
const char* obstacle_of(const Operation& operation);

struct Graph {
  std::vector<std::shared_ptr<const Operation>> operations;  // in an order in which they can run
  std::map<int64_t, Tensor> tensors;                         // by id
  bool writes(int64_t id) const;
};

// Null, or why it is none: a tensor made twice, or from itself, or an array that is not described
// the same everywhere.
const char* make_graph(const std::vector<std::shared_ptr<const Operation>>& operations,
                       Graph& graph);

// Runs it: addresses by id; what was read by value stands in `values`.
void evaluate(const Graph& graph, const std::map<int64_t, void*>& addresses,
              const std::map<int64_t, float>& values);

int64_t bytes_of(cudnnDataType_t type);

}  // namespace gptbench::emulation
