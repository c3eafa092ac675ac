#include "emulated_gpu/cudnn/backend.h"

#include <algorithm>
#include <cstring>

namespace gptbench::emulation {
namespace {

// Attributes that a descriptor takes, and how many values of each.
struct Rule {
  cudnnBackendDescriptorType_t of;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t least, most;  // least 0: may be left out
};
constexpr int64_t any = 1 << 20;
constexpr Rule rules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 0, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 0, 1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1,
     1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
     1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 0, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, 1},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
     1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, any},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
     any},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, 1, any},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     1, 1},
};

int64_t value_bytes(cudnnBackendAttributeType_t type) {
  return type == CUDNN_TYPE_BOOLEAN ? 1
         : type == CUDNN_TYPE_DATA_TYPE || type == CUDNN_TYPE_POINTWISE_MODE ||
                 type == CUDNN_TYPE_HEUR_MODE || type == CUDNN_TYPE_REDUCTION_OPERATOR_TYPE
             ? 4
             : 8;
}

Sizes sizes_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
  const std::vector<int64_t> values = d.values<int64_t>(name);
  Sizes sizes{};
  std::copy_n(values.begin(), std::min<size_t>(values.size(), 4), sizes.begin());
  return sizes;
}

Tensor tensor_of(const Descriptor& d) {
  Tensor t;
  t.id = d.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  t.type = d.value(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  t.sizes = sizes_of(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
  t.strides = sizes_of(d, CUDNN_ATTR_TENSOR_STRIDES);
  t.alignment = d.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
  t.is_virtual = d.value(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  t.by_value = d.value(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
  return t;
}

cudnnStatus_t check_tensor(const Descriptor& d) {
  const Tensor t = tensor_of(d);
  for (size_t axis = 0; axis < 4; ++axis)
    if (t.sizes[axis] <= 0 || t.strides[axis] <= 0)
      return refused(CUDNN_STATUS_BAD_PARAM, "sizes and strides of a tensor are positive");
  if (t.alignment <= 0 || (t.alignment & (t.alignment - 1)) != 0 ||
      t.alignment % bytes_of(t.type) != 0)
    return refused(CUDNN_STATUS_BAD_PARAM, "the alignment of a tensor is that of its elements");
  if (bytes_of(t.type) == 0) return refused(CUDNN_STATUS_NOT_SUPPORTED, "the type of a tensor");
  if (t.by_value && (t.is_virtual || t.elements() != 1 || t.type != CUDNN_DATA_FLOAT))
    return refused(CUDNN_STATUS_NOT_SUPPORTED, "a tensor by value is one float");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t make_operation(Descriptor& d) {
  auto operation = std::make_shared<Operation>();
  Operation& o = *operation;
  const auto input = [&](cudnnBackendAttributeName_t name) {
    if (const Descriptor* const tensor = d.other(name)) o.inputs.push_back(tensor_of(*tensor));
  };
  const auto lengths = [&](cudnnBackendAttributeName_t name) {
    const Descriptor* const tensor = d.other(name);
    return tensor == nullptr ? nullptr : std::make_unique<Tensor>(tensor_of(*tensor));
  };
  switch (d.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
      const Descriptor& how = *d.other(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      o.mode = how.value(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_IDENTITY);
      o.axis = how.value<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
      input(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      input(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      input(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
      o.y = tensor_of(*d.other(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
      break;
    }
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      o.kind = Operation::Kind::matmul;
      input(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
      input(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
      o.m = lengths(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC);
      o.n = lengths(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC);
      o.k = lengths(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC);
      o.y = tensor_of(*d.other(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      o.kind = Operation::Kind::reduction;
      o.reduction = d.other(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                        ->value(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD);
      input(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      o.y = tensor_of(*d.other(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
      break;
    default:
      o.kind = Operation::Kind::reshape;
      input(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
      o.y = tensor_of(*d.other(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
  }
  if (const char* const obstacle = obstacle_of(o))
    return refused(CUDNN_STATUS_NOT_SUPPORTED, obstacle);
  d.operation = std::move(operation);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t make_graph(Descriptor& d) {
  std::vector<std::shared_ptr<const Operation>> operations;
  for (const auto handle : d.values<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    const Descriptor& operation = checked(handle, "an operation of a graph");
    if (operation.operation == nullptr)
      return refused(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "what is no operation in a graph");
    operations.push_back(operation.operation);
  }
  auto graph = std::make_shared<Graph>();
  if (const char* const obstacle = make_graph(operations, *graph))
    return refused(CUDNN_STATUS_BAD_PARAM, obstacle);
  d.graph = std::move(graph);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t make_plan(Descriptor& d) {
  const Descriptor& configuration = *d.other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  d.graph = configuration.graph;
  d.engine = configuration.engine;
  if (d.graph == nullptr) return refused(CUDNN_STATUS_BAD_PARAM, "a plan without a graph");
  if (d.engine == unsupported_engine)
    return refused(CUDNN_STATUS_NOT_SUPPORTED, "an engine that turns out not to support the graph");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_attributes(const Descriptor& d) {
  for (const Rule& rule : rules) {
    if (rule.of != d.type) continue;
    const auto found = d.attributes.find(rule.name);
    const int64_t count = found == d.attributes.end() ? 0 : found->second.count;
    if (count < rule.least)
      return refused(CUDNN_STATUS_BAD_PARAM,
                     "attribute " + std::to_string(rule.name) + " is missing");
    if (rule.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
    for (const auto handle : d.values<cudnnBackendDescriptor_t>(rule.name))
      if (!checked(handle, "cudnnBackendFinalize").finalized)
        return refused(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                       "attribute " + std::to_string(rule.name) + " is not finalised");
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

std::string& last_error() {
  thread_local std::string text;
  return text;
}

cudnnStatus_t refused(cudnnStatus_t status, const std::string& reason) {
  last_error() = reason;
  return status;
}

template <class T>
std::vector<T> Descriptor::values(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return {};
  std::vector<T> all(static_cast<size_t>(found->second.count));
  for (size_t i = 0; i < all.size(); ++i) {
    T value;
    std::memcpy(&value, found->second.bytes.data() + i * sizeof(T), sizeof(T));
    all[i] = value;
  }
  return all;
}
template std::vector<int64_t> Descriptor::values(cudnnBackendAttributeName_t) const;
template std::vector<void*> Descriptor::values(cudnnBackendAttributeName_t) const;

Descriptor* Descriptor::other(cudnnBackendAttributeName_t name) const {
  const auto handle = value<cudnnBackendDescriptor_t>(name, nullptr);
  return handle == nullptr ? nullptr : &checked(handle, "an attribute");
}

int64_t workspace_of(const Graph& graph, int engine) {
  int64_t largest = 0;
  for (const auto& [id, tensor] : graph.tensors)
    largest = std::max(largest, tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2] * 4);
  return engine == 0 ? 0 : (largest + 255) / 256 * 256;
}

cudnnStatus_t finalize(Descriptor& d) {
  if (d.finalized) return refused(CUDNN_STATUS_BAD_PARAM, "a descriptor is finalised once");
  cudnnStatus_t status = check_attributes(d);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      status = check_tensor(d);
      break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      status = make_operation(d);
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      status = make_graph(d);
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      d.graph = d.other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->graph;
      if (d.graph == nullptr) status = refused(CUDNN_STATUS_BAD_PARAM, "heuristics of no graph");
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      status = make_plan(d);
      break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return refused(CUDNN_STATUS_NOT_SUPPORTED, "configurations are those of the heuristics");
    default:
      break;
  }
  d.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t set_attribute(Descriptor& d, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (d.finalized) return refused(CUDNN_STATUS_BAD_PARAM, "a descriptor was finalised already");
  for (const Rule& rule : rules) {
    if (rule.of != d.type || rule.name != name) continue;
    if (rule.type != type) return refused(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "its type");
    if (values == nullptr || count < std::max<int64_t>(rule.least, 1) || count > rule.most)
      return refused(CUDNN_STATUS_BAD_PARAM, "its number of values");
    const char* const begin = static_cast<const char*>(values);
    d.attributes[name] = {type, count, {begin, begin + count * value_bytes(type)}};
    return CUDNN_STATUS_SUCCESS;
  }
  return refused(CUDNN_STATUS_NOT_SUPPORTED, "attribute " + std::to_string(name));
}

bool has_rules(cudnnBackendDescriptorType_t type) {
  return type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR ||
         std::any_of(std::begin(rules), std::end(rules),
                     [&](const Rule& rule) { return rule.of == type; });
}

}  // namespace gptbench::emulation
