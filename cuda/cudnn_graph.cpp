#include "cuda/cudnn_graph.h"

#include "base/error.h"

namespace gptbench {

CudnnDescriptor::CudnnDescriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type)
    : cudnn_(cudnn) {
  note(cudnn_.cudnnBackendCreateDescriptor(type, &descriptor_));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnn_.cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::note(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS && ok()) error_ = cudnn_.last_error(status);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values) {
  if (ok()) note(cudnn_.cudnnBackendSetAttribute(descriptor_, name, type, count, values));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
  if (ok() && !other.ok()) error_ = other.error();
  const cudnnBackendDescriptor_t value = other.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void CudnnDescriptor::finalize() {
  if (ok()) note(cudnn_.cudnnBackendFinalize(descriptor_));
}

CudnnGraph::Tensor CudnnGraph::add_tensor(cudnnDataType_t type, const Sizes& sizes,
                                          const Sizes& strides, bool in_memory, bool by_value,
                                          int64_t alignment) {
  tensors_.push_back(std::make_unique<CudnnDescriptor>(cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  const Tensor id = static_cast<Tensor>(tensors_.size());
  CudnnDescriptor& t = *tensors_.back();
  const bool is_virtual = !in_memory;
  t.set_number(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data());
  t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  t.set_number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  finish(t);
  return id;
}

CudnnGraph::Tensor CudnnGraph::array(cudnnDataType_t type, const Sizes& sizes,
                                     const Sizes& strides) {
  return add_tensor(type, sizes, strides, true, false);
}

CudnnGraph::Tensor CudnnGraph::between(cudnnDataType_t type, const Sizes& sizes,
                                       const Sizes& strides) {
  return add_tensor(type, sizes, strides, false, false);
}

CudnnGraph::Tensor CudnnGraph::made(const Result& result) {
  const Sizes& s = result.sizes;
  return result.into != none ? result.into
                             : between(result.type, s, {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1});
}

CudnnGraph::Tensor CudnnGraph::scalar() {
  return add_tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, true, true, 4);
}

CudnnGraph::Tensor CudnnGraph::lengths(int64_t B) {
  return add_tensor(CUDNN_DATA_INT32, {B, 1, 1, 1}, {1, 1, 1, 1}, true, false, 4);
}

void CudnnGraph::finish(CudnnDescriptor& descriptor) {
  descriptor.finalize();
  if (error_.empty()) error_ = descriptor.error();
}

CudnnDescriptor& CudnnGraph::helper(cudnnBackendDescriptorType_t type) {
  helpers_.push_back(std::make_unique<CudnnDescriptor>(cudnn_, type));
  return *helpers_.back();
}

void CudnnGraph::add_operation(cudnnBackendDescriptorType_t type,
                               std::initializer_list<Operand> operands,
                               cudnnBackendAttributeName_t how_name, const CudnnDescriptor* how) {
  operations_.push_back(std::make_unique<CudnnDescriptor>(cudnn_, type));
  CudnnDescriptor& operation = *operations_.back();
  if (how != nullptr) operation.set(how_name, *how);
  for (const auto& [name, operand] : operands)
    if (operand != none) operation.set(name, tensor(operand));
  finish(operation);
}

CudnnGraph::Tensor CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Result& y, Tensor x,
                                         Tensor b, Tensor t, int64_t axis) {
  const bool is_whole = y.type == CUDNN_DATA_INT32 || y.type == CUDNN_DATA_BOOLEAN;
  const cudnnDataType_t compute = is_whole ? y.type : CUDNN_DATA_FLOAT;
  CudnnDescriptor& how = helper(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  if (axis >= 0) how.set_number(CUDNN_ATTR_POINTWISE_AXIS, axis);
  finish(how);
  const Tensor out = made(y);
  add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                 {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                 {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t},
                 {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out}},
                CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &how);
  return out;
}

CudnnGraph::Tensor CudnnGraph::matmul(const Result& y, Tensor a, Tensor b, const Extents& extents) {
  CudnnDescriptor& how = helper(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  finish(how);
  const Tensor out = made(y);
  add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                 {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                 {CUDNN_ATTR_OPERATION_MATMUL_CDESC, out},
                 {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, extents.m},
                 {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, extents.n},
                 {CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, extents.k}},
                CUDNN_ATTR_OPERATION_MATMUL_DESC, &how);
  return out;
}

CudnnGraph::Tensor CudnnGraph::reduce(cudnnReduceTensorOp_t operation, const Result& y, Tensor x) {
  CudnnDescriptor& how = helper(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  finish(how);
  const Tensor out = made(y);
  add_operation(
      CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, out}},
      CUDNN_ATTR_OPERATION_REDUCTION_DESC, &how);
  return out;
}

void CudnnGraph::reshape(Tensor x, Tensor y) {
  add_operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
}

std::vector<CudnnPlan> CudnnGraph::plans(const CudnnTarget& target, int64_t workspace_bytes,
                                         size_t most) {
  std::vector<CudnnPlan> plans;
  if (!error_.empty()) return plans;
  CudnnDescriptor graph(cudnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const auto& operation : operations_) operations.push_back(operation->get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(operations.size()), operations.data());
  if (target.handle != nullptr)
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  graph.finalize();

  CudnnDescriptor heuristics(cudnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.properties != nullptr)
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  heuristics.finalize();
  error_ = heuristics.error();
  if (!heuristics.ok()) return plans;

  int64_t found = 0;
  cudnn_.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &found, nullptr);
  std::vector<std::unique_ptr<CudnnDescriptor>> engines;
  std::vector<cudnnBackendDescriptor_t> results;
  for (int64_t i = 0; i < found; ++i) {
    engines.push_back(
        std::make_unique<CudnnDescriptor>(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    results.push_back(engines.back()->get());
  }
  if (found > 0)
    cudnn_.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, found, &found, results.data());
  for (int64_t i = 0; i < found && plans.size() < most; ++i) {
    CudnnPlan plan;
    plan.descriptor =
        std::make_unique<CudnnDescriptor>(cudnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    CudnnDescriptor& d = *plan.descriptor;
    if (target.handle != nullptr)
      d.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
    else
      d.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
    d.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *engines[static_cast<size_t>(i)]);
    d.finalize();
    int64_t count = 0;
    if (d.ok())
      cudnn_.cudnnBackendGetAttribute(d.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                      CUDNN_TYPE_INT64, 1, &count, &plan.workspace_bytes);
    if (!d.ok())
      error_ = d.error();
    else if (plan.workspace_bytes > workspace_bytes)
      error_ = "it needs " + std::to_string(plan.workspace_bytes) + " bytes of workspace";
    else
      plans.push_back(std::move(plan));
  }
  return plans;
}

cudnnDataType_t cudnn_type_of(DType type) {
  return type == DType::bf16  ? CUDNN_DATA_BFLOAT16
         : type == DType::f16 ? CUDNN_DATA_HALF
                              : CUDNN_DATA_FLOAT;
}

cudnnStatus_t execute(const Cudnn& cudnn, cudnnHandle_t handle, const CudnnPlan& plan,
                      const std::vector<CudnnGraph::Tensor>& tensors,
                      const std::vector<void*>& pointers, void* workspace) {
  GPTBENCH_CHECK(tensors.size() == pointers.size(), "one address a tensor");
  CudnnDescriptor pack(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const int64_t count = static_cast<int64_t>(tensors.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, tensors.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  if (!pack.ok()) return CUDNN_STATUS_BAD_PARAM;
  return cudnn.cudnnBackendExecute(handle, plan.descriptor->get(), pack.get());
}

}  // namespace gptbench
