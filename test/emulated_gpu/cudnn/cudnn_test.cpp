// The emulated cuDNN by itself: small graphs, and what it refuses. Attention as a whole is compared
// with the reference in test/gpu/attention_test.cpp.
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace gptbench::test {
namespace {

using Sizes = std::vector<int64_t>;
using Handle = cudnnBackendDescriptor_t;

Handle made(cudnnBackendDescriptorType_t type) {
  Handle handle = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(type, &handle), CUDNN_STATUS_SUCCESS);
  return handle;
}

template <class T>
cudnnStatus_t set(Handle d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<T>& values) {
  return cudnnBackendSetAttribute(d, name, type, static_cast<int64_t>(values.size()),
                                  values.data());
}
cudnnStatus_t set(Handle d, cudnnBackendAttributeName_t name, Handle other) {
  return cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

Handle tensor(int64_t id, const Sizes& sizes, const Sizes& strides, bool by_value = false,
              cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  const Handle d = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {id});
  set<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {type});
  set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
  set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  set<int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, {16});
  EXPECT_EQ(
      cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendFinalize(d), CUDNN_STATUS_SUCCESS);
  return d;
}

Handle multiplication(Handle x, Handle b, Handle y) {
  const Handle how = made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
                            {CUDNN_POINTWISE_MUL});
  set<cudnnDataType_t>(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                       {CUDNN_DATA_FLOAT});
  EXPECT_EQ(cudnnBackendFinalize(how), CUDNN_STATUS_SUCCESS);
  const Handle operation = made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  return operation;
}

Handle product(Handle a, Handle b, Handle c, Handle columns) {
  const Handle how = made(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set<cudnnDataType_t>(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
  EXPECT_EQ(cudnnBackendFinalize(how), CUDNN_STATUS_SUCCESS);
  const Handle operation = made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  set(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  set(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  set(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  set(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  set(operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, columns);
  return operation;
}

cudnnHandle_t library() {
  static const cudnnHandle_t handle = [] {
    cudnnHandle_t one = nullptr;
    cudaStream_t stream = nullptr;
    cudnnCreate(&one);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudnnSetStream(one, stream);
    return one;
  }();
  return handle;
}

cudnnStatus_t make_graph(const std::vector<Handle>& operations, Handle& graph) {
  graph = made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
  set<cudnnHandle_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, {library()});
  return cudnnBackendFinalize(graph);
}

// The plan of the heuristics' i-th engine; null where it turns out not to support the graph.
Handle plan_of(Handle graph, int64_t i) {
  const Handle heuristics = made(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                              {CUDNN_HEUR_MODE_A});
  EXPECT_EQ(cudnnBackendFinalize(heuristics), CUDNN_STATUS_SUCCESS);
  int64_t found = 0;
  std::vector<Handle> engines;
  for (int64_t each = 0; each <= i; ++each)
    engines.push_back(made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           i + 1, &found, engines.data());
  EXPECT_GT(found, i);
  const Handle plan = made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set<cudnnHandle_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, {library()});
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines.back());
  return cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS ? plan : nullptr;
}

cudnnStatus_t execute(Handle plan, const std::vector<int64_t>& ids,
                      const std::vector<void*>& pointers, void* workspace) {
  const Handle pack = made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  set<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {workspace});
  EXPECT_EQ(cudnnBackendFinalize(pack), CUDNN_STATUS_SUCCESS);
  return cudnnBackendExecute(library(), plan, pack);
}

// 64 floats of the device, and as many of the host.
struct Floats {
  static constexpr size_t bytes = 256;
  Floats() {
    cudaMalloc(reinterpret_cast<void**>(&device), bytes);
    cudaHostAlloc(reinterpret_cast<void**>(&host), bytes, cudaHostAllocDefault);
  }
  ~Floats() {
    cudaFree(device);
    cudaFreeHost(host);
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  void copy(bool up) const {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    cudaMemcpyAsync(up ? device : host, up ? host : device, bytes,
                    up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  float *device = nullptr, *host = nullptr;
};

const Sizes shape = {1, 1, 4, 8}, dense = {32, 32, 8, 1}, one = {1, 1, 1, 1};

}  // namespace

// The factor, which the host holds, is read in the call; engines give the same result.
TEST(EmulatedCudnn, PointwiseByEveryEngine) {
  const Handle operation =
      multiplication(tensor(1, shape, dense), tensor(2, one, one, true), tensor(3, shape, dense));
  ASSERT_EQ(cudnnBackendFinalize(operation), CUDNN_STATUS_SUCCESS);
  Handle graph = nullptr;
  ASSERT_EQ(make_graph({operation}, graph), CUDNN_STATUS_SUCCESS);
  const Floats x, y, workspace;
  for (int i = 0; i < 32; ++i) x.host[i] = static_cast<float>(i);
  x.copy(true);
  int plans = 0;
  for (int64_t engine = 0; engine < 3; ++engine) {
    const Handle plan = plan_of(graph, engine);
    if (plan == nullptr) continue;
    ++plans;
    float factor = 3.0f;
    ASSERT_EQ(execute(plan, {1, 2, 3}, {x.device, &factor, y.device}, workspace.device),
              CUDNN_STATUS_SUCCESS);
    factor = 5.0f;
    y.copy(false);
    for (int i = 0; i < 32; ++i) EXPECT_EQ(y.host[i], 3.0f * static_cast<float>(i));
  }
  EXPECT_EQ(plans, 2);
}

// Heads in pairs share a factor, which lies transposed; columns from a length on are undefined.
TEST(EmulatedCudnn, ProductOfSharedHeadsAndLengths) {
  const Handle a = tensor(1, {1, 2, 2, 3}, {12, 6, 3, 1}),
               b = tensor(2, {1, 1, 3, 4}, {12, 12, 1, 3}),
               c = tensor(3, {1, 2, 2, 4}, {16, 8, 4, 1}),
               columns = tensor(4, one, one, false, CUDNN_DATA_INT32);
  const Handle operation = product(a, b, c, columns);
  ASSERT_EQ(cudnnBackendFinalize(operation), CUDNN_STATUS_SUCCESS);
  Handle graph = nullptr;
  ASSERT_EQ(make_graph({operation}, graph), CUDNN_STATUS_SUCCESS);
  const Floats left, right, result, length;
  for (int i = 0; i < 12; ++i) {
    left.host[i] = static_cast<float>(i - 5);
    right.host[i] = static_cast<float>(2 * i + 1);
  }
  const int32_t visible = 3;
  std::memcpy(length.host, &visible, sizeof visible);
  left.copy(true);
  right.copy(true);
  length.copy(true);
  ASSERT_EQ(execute(plan_of(graph, 0), {1, 2, 3, 4},
                    {left.device, right.device, result.device, length.device}, nullptr),
            CUDNN_STATUS_SUCCESS);
  result.copy(false);
  for (int head = 0; head < 2; ++head)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        float sum = 0.0f;
        for (int l = 0; l < 3; ++l) sum += left.host[6 * head + 3 * i + l] * right.host[l + 3 * j];
        const float seen = result.host[8 * head + 4 * i + j];
        if (j < visible)
          EXPECT_EQ(seen, sum);
        else
          EXPECT_TRUE(std::isnan(seen));
      }
}

TEST(EmulatedCudnn, Refusals) {
  const Handle x = tensor(1, shape, dense), y = tensor(2, shape, dense),
               other = tensor(3, {1, 1, 4, 7}, dense);
  EXPECT_EQ(set<int64_t>(x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {5}),
            CUDNN_STATUS_BAD_PARAM);  // finalised
  EXPECT_EQ(cudnnBackendFinalize(multiplication(x, other, y)), CUDNN_STATUS_NOT_SUPPORTED);
  const Handle bare = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendFinalize(bare), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set<int64_t>(bare, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_INT64, {0}),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(set<int64_t>(bare, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, {1, 1}),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set<int64_t>(bare, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, {1}),
            CUDNN_STATUS_NOT_SUPPORTED);
  const Handle once = multiplication(x, x, y), twice = multiplication(y, y, y);
  EXPECT_EQ(cudnnBackendFinalize(once), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendFinalize(twice), CUDNN_STATUS_SUCCESS);
  Handle graph = nullptr;
  EXPECT_EQ(make_graph({twice}, graph), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(make_graph({once, twice}, graph), CUDNN_STATUS_BAD_PARAM);
  ASSERT_EQ(make_graph({once}, graph), CUDNN_STATUS_SUCCESS);
  const Handle plan = plan_of(graph, 0);
  const Floats array;
  EXPECT_EQ(execute(plan, {1}, {array.device}, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(execute(plan, {1, 7}, {array.device, array.device}, nullptr), CUDNN_STATUS_BAD_PARAM);
}

TEST(EmulatedCudnnMisuse, EndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Handle operation =
      multiplication(tensor(1, shape, dense), tensor(2, shape, dense), tensor(3, shape, dense));
  ASSERT_EQ(cudnnBackendFinalize(operation), CUDNN_STATUS_SUCCESS);
  Handle graph = nullptr;
  ASSERT_EQ(make_graph({operation}, graph), CUDNN_STATUS_SUCCESS);
  const Handle plan = plan_of(graph, 0), with_workspace = plan_of(graph, 2);
  const Floats x;
  EXPECT_DEATH(execute(plan, {1, 2, 3}, {x.device, x.host, x.device}, nullptr), "device memory");
  EXPECT_DEATH(execute(plan, {1, 2, 3}, {x.device, x.device + 1, x.device}, nullptr), "aligned");
  EXPECT_DEATH(execute(with_workspace, {1, 2, 3}, {x.device, x.device, x.device}, nullptr),
               "workspace");
  EXPECT_DEATH(cudnnBackendDestroyDescriptor(x.device), "no descriptor");
}

}  // namespace gptbench::test
