#include "emulated_gpu/cudnn/graph.h"

#include <set>

namespace gptbench::emulation {
namespace {

bool broadcasts(const Tensor& x, const Tensor& y) {
  for (size_t axis = 0; axis < 4; ++axis)
    if (x.sizes[axis] != y.sizes[axis] && x.sizes[axis] != 1) return false;
  return true;
}

bool divides(const Tensor& whole, const Tensor& part, size_t axes) {
  for (size_t axis = 0; axis < axes; ++axis)
    if (part.sizes[axis] <= 0 || whole.sizes[axis] % part.sizes[axis] != 0) return false;
  return true;
}

size_t inputs_of(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_CMP_LT:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_LOGICAL_AND:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 0;
  }
}

bool same(const Tensor& x, const Tensor& y) {
  return x.type == y.type && x.sizes == y.sizes && x.strides == y.strides &&
         x.is_virtual == y.is_virtual && x.by_value == y.by_value;
}

}  // namespace

int64_t bytes_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_HALF:
      return 2;
    case CUDNN_DATA_BOOLEAN:
      return 1;
    default:
      return 0;
  }
}

int64_t Tensor::extent() const {
  int64_t last = 0;
  for (size_t axis = 0; axis < 4; ++axis) last += (sizes[axis] - 1) * strides[axis];
  return last + 1;
}

int64_t Tensor::offset(const Sizes& place) const {
  int64_t at = 0;
  for (size_t axis = 0; axis < 4; ++axis) at += place[axis] * strides[axis];
  return at;
}

const char* obstacle_of(const Operation& o) {
  switch (o.kind) {
    case Operation::Kind::pointwise:
      if (inputs_of(o.mode) == 0) return "a pointwise mode that is not emulated";
      if (inputs_of(o.mode) != o.inputs.size()) return "inputs of a pointwise operation";
      if (o.mode == CUDNN_POINTWISE_GEN_INDEX && (o.axis < 0 || o.axis > 3)) return "axis";
      for (const Tensor& x : o.inputs)
        if (!broadcasts(x, o.y)) return "shapes of a pointwise operation";
      return nullptr;
    case Operation::Kind::matmul: {
      const Tensor &a = o.inputs[0], &b = o.inputs[1];
      if (a.sizes[0] != o.y.sizes[0] || a.sizes[1] != o.y.sizes[1] || !divides(o.y, b, 2) ||
          a.sizes[2] != o.y.sizes[2] || b.sizes[3] != o.y.sizes[3] || a.sizes[3] != b.sizes[2])
        return "shapes of a product";
      for (const auto* lengths : {&o.m, &o.n, &o.k})
        if (*lengths != nullptr && ((*lengths)->sizes != Sizes{o.y.sizes[0], 1, 1, 1} ||
                                    (*lengths)->type != CUDNN_DATA_INT32))
          return "lengths of a product";
      return nullptr;
    }
    case Operation::Kind::reduction:
      if (o.reduction != CUDNN_REDUCE_TENSOR_ADD && o.reduction != CUDNN_REDUCE_TENSOR_MAX)
        return "a reduction that is not emulated";
      return divides(o.inputs[0], o.y, 4) ? nullptr : "shapes of a reduction";
    case Operation::Kind::reshape:
      return o.inputs[0].elements() == o.y.elements() ? nullptr : "shapes of a reshape";
  }
  return "no operation";
}

bool Graph::writes(int64_t id) const {
  for (const auto& operation : operations)
    if (operation->y.id == id) return true;
  return false;
}

const char* make_graph(const std::vector<std::shared_ptr<const Operation>>& operations,
                       Graph& graph) {
  std::set<int64_t> made, results;
  for (const auto& o : operations) {
    if (o->y.by_value) return "a result that is given by value";
    if (!results.insert(o->y.id).second) return "two operations with one result";
    std::vector<const Tensor*> all = {&o->y, o->m.get(), o->n.get(), o->k.get()};
    for (const Tensor& x : o->inputs) all.push_back(&x);
    for (const Tensor* t : all) {
      if (t == nullptr) continue;
      const auto known = graph.tensors.emplace(t->id, *t).first;
      if (!same(known->second, *t)) return "two tensors with one id";
    }
  }
  for (const auto& [id, tensor] : graph.tensors)
    if (results.count(id) == 0) {
      if (tensor.is_virtual) return "a tensor that lies nowhere and that nothing makes";
      made.insert(id);
    }
  std::vector<std::shared_ptr<const Operation>> left = operations;
  while (!left.empty()) {
    bool moved = false;
    for (size_t i = 0; i < left.size(); ++i) {
      bool ready = true;
      for (const Tensor& x : left[i]->inputs) ready = ready && made.count(x.id) != 0;
      if (!ready) continue;
      made.insert(left[i]->y.id);
      graph.operations.push_back(left[i]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      moved = true;
      break;
    }
    if (!moved) return "a circle";
  }
  return nullptr;
}

}  // namespace gptbench::emulation
