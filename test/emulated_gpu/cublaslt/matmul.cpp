// cublasLtMatmul: what is refused is refused in the call; arrays and scales are read when the
// stream gets there, by one piece of work, or by two where the sum is formed in parts: a buffer
// that is used again too early is then found, a workspace that two streams share too.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "emulated_gpu/cublaslt/algorithms.h"
#include "emulated_gpu/cublaslt/sums.h"
#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

struct Call {
  Problem problem;
  Algorithm algorithm;
  float alpha, beta;
  const void *a, *b, *c;
  void *d, *bias, *aux, *workspace;
  const float *a_scale, *b_scale;
};

// Bytes of an array from the first to the last that a product touches.
struct Range {
  const char* name;
  const void* begin;
  int64_t bytes;
  bool written;
  uint32_t alignment;
};

int64_t extent(int64_t lines, int64_t length, int64_t ld, cudaDataType_t type) {
  return ((lines - 1) * ld + length) * bytes_of(type);
}

std::vector<Range> ranges_of(const Call& call) {
  const Problem& p = call.problem;
  const Algorithm& algorithm = call.algorithm;
  const auto factor = [](int64_t rows, int64_t columns, int64_t ld, bool turned,
                         cudaDataType_t type) {
    return turned ? extent(rows, columns, ld, type) : extent(columns, rows, ld, type);
  };
  std::vector<Range> ranges = {
      {"A", call.a, factor(p.m, p.k, p.lda, p.transpose_a, p.a), false, algorithm.align_a},
      {"B", call.b, factor(p.k, p.n, p.ldb, p.transpose_b, p.b), false, algorithm.align_b},
      {"D", call.d, extent(p.n, p.m, p.ldd, p.d), true, algorithm.align_d}};
  if (call.beta != 0.0f && call.c != call.d)
    ranges.push_back({"C", call.c, extent(p.n, p.m, p.ldc, p.c), false, algorithm.align_c});
  if (p.reads_bias() || p.writes_bias())
    ranges.push_back({"the bias", call.bias, p.bias_length() * bytes_of(p.bias), p.writes_bias(),
                      algorithm.align_bias});
  if (p.has_aux())
    ranges.push_back({"the auxiliary matrix", call.aux, extent(p.n, p.m, p.ldaux, p.aux),
                      p.writes_aux(), algorithm.align_aux});
  if (call.a_scale != nullptr) ranges.push_back({"the scale of A", call.a_scale, 4, false, 4});
  if (call.b_scale != nullptr) ranges.push_back({"the scale of B", call.b_scale, 4, false, 4});
  const size_t workspace = workspace_of(algorithm, p);
  if (workspace > 0)
    ranges.push_back({"the workspace", call.workspace, static_cast<int64_t>(workspace), true, 256});
  return ranges;
}

bool overlap(const Range& x, const Range& y) {
  const uintptr_t a = reinterpret_cast<uintptr_t>(x.begin),
                  b = reinterpret_cast<uintptr_t>(y.begin);
  return a < b + static_cast<uintptr_t>(y.bytes) && b < a + static_cast<uintptr_t>(x.bytes);
}

void check_memory(const Call& call, const char* when) {
  const std::vector<Range> ranges = ranges_of(call);
  for (const Range& range : ranges)
    if (!is_device_memory(range.begin, static_cast<size_t>(range.bytes)))
      misuse("cublasLtMatmul: %s (%p) is not %lld bytes of device memory %s", range.name,
             range.begin, static_cast<long long>(range.bytes), when);
}

void check_addresses(const Call& call) {
  check_memory(call, "when called");
  const std::vector<Range> ranges = ranges_of(call);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (reinterpret_cast<uintptr_t>(range.begin) % range.alignment != 0)
      misuse("cublasLtMatmul: %s (%p) is not a multiple of the %u bytes that were promised",
             range.name, range.begin, range.alignment);
    for (size_t j = 0; j < i; ++j)
      if ((range.written || ranges[j].written) && overlap(range, ranges[j]))
        misuse("cublasLtMatmul: %s overlaps %s", range.name, ranges[j].name);
  }
}

// The hyperbolic-tangent form, which is the library's.
constexpr float gelu_scale = 0.7978845608f, gelu_cubic = 0.044715f;
float gelu(float x) {
  return 0.5f * x * (1.0f + std::tanh(gelu_scale * (x + gelu_cubic * x * x * x)));
}
float gelu_derivative(float x) {
  const float t = std::tanh(gelu_scale * (x + gelu_cubic * x * x * x));
  const float slope = gelu_scale * (1.0f + 3.0f * gelu_cubic * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope;
}

int64_t first_of_part(const Call& call, int part) {
  return call.problem.k * part / call.algorithm.parts;
}

// Scales, C and the epilogue: from sums [i + j m] to D and what goes beside it.
void finish(const Call& call, const std::vector<float>& sums) {
  const Problem& p = call.problem;
  float alpha = call.alpha;
  if (call.a_scale != nullptr) alpha *= *call.a_scale;
  if (call.b_scale != nullptr) alpha *= *call.b_scale;
  std::vector<float> row_sums(static_cast<size_t>(p.m), 0.0f);
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = 0; i < p.m; ++i) {
      float value = alpha * sums[static_cast<size_t>(i + j * p.m)];
      if (call.beta != 0.0f) value += call.beta * load(p.c, call.c, i + j * p.ldc);
      if (p.reads_bias()) value += load(p.bias, call.bias, i);
      if (p.writes_aux()) store(p.aux, call.aux, i + j * p.ldaux, value);
      if (p.has_gelu())
        value = gelu(value);
      else if (p.has_aux())
        value *= gelu_derivative(load(p.aux, call.aux, i + j * p.ldaux));
      row_sums[static_cast<size_t>(i)] += value;
      store(p.d, call.d, i + j * p.ldd, value);
    }
  if (!p.writes_bias()) return;
  if (p.epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD) {
    row_sums.resize(static_cast<size_t>(p.bias_length()));
    const bool of_a = p.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    sum_factor(p, of_a, of_a ? call.a : call.b, row_sums.data());
  }
  for (int64_t i = 0; i < p.bias_length(); ++i)
    store(p.bias, call.bias, i, row_sums[static_cast<size_t>(i)]);
}

std::vector<float> sums_of_part(const Call& call, int part) {
  const Problem& p = call.problem;
  std::vector<float> sums(static_cast<size_t>(p.m * p.n));
  form_sums(p, call.a, call.b, first_of_part(call, part), first_of_part(call, part + 1),
            sums.data());
  return sums;
}

cudaDataType_t part_type(const Call& call) {
  return call.algorithm.reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? CUDA_R_32F
                                                                            : call.problem.d;
}

void write_parts(const Call& call) {
  const int64_t size = call.problem.m * call.problem.n;
  for (int part = 0; part < call.algorithm.parts; ++part) {
    const std::vector<float> sums = sums_of_part(call, part);
    for (int64_t i = 0; i < size; ++i)
      store(part_type(call), call.workspace, part * size + i, sums[static_cast<size_t>(i)]);
  }
}

void add_parts(const Call& call) {
  const int64_t size = call.problem.m * call.problem.n;
  std::vector<float> sums(static_cast<size_t>(size), 0.0f);
  for (int part = 0; part < call.algorithm.parts; ++part)
    for (int64_t i = 0; i < size; ++i)
      sums[static_cast<size_t>(i)] += load(part_type(call), call.workspace, part * size + i);
  finish(call, sums);
}

// Part after part is added to D, in D's type; the workspace holds counters.
void add_in_place(Call call) {
  std::memset(call.workspace, 0xff, workspace_of(call.algorithm, call.problem));
  for (int part = 0; part < call.algorithm.parts; ++part) {
    finish(call, sums_of_part(call, part));
    call.beta = 1.0f;
    call.c = call.d;
    call.problem.ldc = call.problem.ldd;
  }
}

void run(const Call& call, cudaStream_t stream) {
  const Algorithm& chosen = call.algorithm;
  load_code("cublasLtMatmul " + std::to_string(chosen.kind) + " " + std::to_string(chosen.id) +
            " " + std::to_string(chosen.parts));
  const auto add = [&](const char* name, void (*act)(const Call&)) {
    enqueue(stream, name, [call, act] {
      check_memory(call, "when it runs");
      act(call);
      return true;
    });
  };
  if (call.algorithm.parts == 1)
    return add("cublasLtMatmul", [](const Call& c) { finish(c, sums_of_part(c, 0)); });
  if (call.algorithm.reduction == CUBLASLT_REDUCTION_SCHEME_INPLACE)
    return add("cublasLtMatmul (in place)", [](const Call& c) { add_in_place(c); });
  add("cublasLtMatmul (parts)", write_parts);
  add("cublasLtMatmul (sum of parts)", add_parts);
}

}  // namespace
}  // namespace gptbench::emulation

using namespace gptbench::emulation;

extern "C" cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                         const void* alpha, const void* A,
                                         cublasLtMatrixLayout_t a_layout, const void* B,
                                         cublasLtMatrixLayout_t b_layout, const void* beta,
                                         const void* C, cublasLtMatrixLayout_t c_layout, void* D,
                                         cublasLtMatrixLayout_t d_layout,
                                         const cublasLtMatmulAlgo_t* algo, void* workspace,
                                         size_t workspace_bytes, cudaStream_t stream) {
  constexpr const char* name = "cublasLtMatmul";
  if (!is_handle(handle, name)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Operation* const o = operation_of(operation, name);
  const Layout *const a = layout_of(a_layout, name), *const b = layout_of(b_layout, name),
                      *const d = layout_of(d_layout, name);
  const Layout* const c = c_layout == nullptr ? d : layout_of(c_layout, name);
  if (o == nullptr || a == nullptr || b == nullptr || d == nullptr || alpha == nullptr ||
      beta == nullptr || A == nullptr || B == nullptr || D == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  Call call{};
  cublasStatus_t status = describe(*o, *a, *b, *c, *d, call.problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (algo == nullptr)
    call.algorithm = plain_algorithm(call.problem);
  else
    status = read_algorithm(*algo, call.problem, call.algorithm);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (call.algorithm.refuses != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspace_of(call.algorithm, call.problem) > workspace_bytes)
    return CUBLAS_STATUS_INVALID_VALUE;

  call.alpha = *static_cast<const float*>(alpha);
  call.beta = *static_cast<const float*>(beta);
  call.a = A;
  call.b = B;
  call.c = C;
  call.d = D;
  call.workspace = workspace;
  const auto pointer = [&](int attribute) { return o->get<void*>(attribute); };
  call.bias = pointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  call.aux = pointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  call.a_scale = static_cast<const float*>(pointer(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER));
  call.b_scale = static_cast<const float*>(pointer(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER));
  for (const float* scale : {call.a_scale, call.b_scale})  // as version 13.1 on an H200
    if (reinterpret_cast<uintptr_t>(scale) % 16 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Problem& p = call.problem;
  if (p.epilogue == CUBLASLT_EPILOGUE_DGELU && call.bias != nullptr)  // as the same version
    return CUBLAS_STATUS_INVALID_VALUE;
  if (((p.reads_bias() || p.writes_bias()) && call.bias == nullptr) ||
      (p.has_aux() && call.aux == nullptr) || (call.beta != 0.0f && C == nullptr))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes > 0 && !is_device_memory(workspace, workspace_bytes))
    misuse("%s: the workspace (%p) is not %zu bytes of device memory", name, workspace,
           workspace_bytes);
  if (workspace_bytes > 0 && reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
    misuse("%s: the workspace (%p) is not a multiple of 256", name, workspace);
  if (call.beta != 0.0f && C == D && p.ldc != p.ldd)
    misuse("%s: C is D with another leading dimension", name);
  check_addresses(call);
  run(call, stream);
  return CUBLAS_STATUS_SUCCESS;
}
