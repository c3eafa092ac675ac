#include "cuda/gemm_cublaslt.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_kernels.h"
#include "cuda/gemm_planned.h"

namespace gptbench {
namespace {

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(GemmSelection::algorithm),
              "an algorithm is 64 bytes");

cublasLtMatmulAlgo_t algorithm_of(const GemmSelection& selection) {
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, selection.algorithm.data(), sizeof algorithm);
  return algorithm;
}

cudaDataType_t data_type_of(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::fp8_e4m3:
      return CUDA_R_8F_E4M3;
    case DType::fp8_e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

// In the order of GemmEpilogue.
constexpr cublasLtEpilogue_t epilogues[] = {
    CUBLASLT_EPILOGUE_DEFAULT,    CUBLASLT_EPILOGUE_BIAS,          CUBLASLT_EPILOGUE_BGRADB,
    CUBLASLT_EPILOGUE_GELU_AUX,   CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
    CUBLASLT_EPILOGUE_DGELU_BGRAD};

// Elements of a fused gradient of the bias, and its bytes in the workspace.
int64_t bias_elements(const GemmDescription& gemm) {
  return gemm.epilogue == GemmEpilogue::bias_gradient ? gemm.n : gemm.m;
}
int64_t bias_bytes(const GemmDescription& gemm) {
  if (!forms_bias_gradient(gemm.epilogue)) return 0;
  return round_up(bias_elements(gemm) * size_of(DType::f32), 256);
}
// Epilogues without one are refused with the address of one.
bool has_bias(GemmEpilogue epilogue) {
  return adds_bias(epilogue) || forms_bias_gradient(epilogue);
}
// Bytes of the workspace that are left for the library.
int64_t library_bytes(const GemmDescription& gemm, int64_t workspace_bytes) {
  return std::max<int64_t>(workspace_bytes - bias_bytes(gemm), 0);
}

// bias: added, or where its gradient goes; null: neither.
template <class Linear>
GemmKey gemm_key(GemmOp op, DType type, const Linear& l, const void* bias) {
  GemmKey key{op, type, l.R, l.K, l.N};
  key.bias = bias != nullptr;
  return key;
}

GemmArguments arguments_of(const void* a, const void* b, void* d, const Workspace& workspace,
                           const Fp8Scales& fp8 = {}) {
  GemmArguments arguments;
  arguments.a = a;
  arguments.b = b;
  arguments.d = d;
  arguments.workspace = workspace;
  arguments.a_scale = fp8.right;
  arguments.b_scale = fp8.left;
  return arguments;
}

// Arrays start at multiples of 16 bytes at least, calls at any of their columns: bytes that an
// address is a multiple of.
constexpr uint32_t array_alignment = 16;
uint32_t column_alignment(DType type, int64_t ld) {
  uint32_t alignment = array_alignment;
  while (ld * size_of(type) % alignment != 0) alignment /= 2;
  return alignment;
}
// For the library, which takes the alignment of addresses that it does not read from what they are.
uintptr_t address_of_alignment(uint32_t bytes) {
  return bytes;
}
static_assert(sizeof(uintptr_t) == sizeof(void*), "the library reads it as an address");

}  // namespace

CublasLtGemm::CublasLtGemm(bool tf32) : tf32_(tf32) {
  lt_.check(lt_.cublasLtCreate(&handle_), "cublasLtCreate");
  cudaDeviceProp device;
  int ordinal = 0;
  GPTBENCH_CUDA(cudaGetDevice(&ordinal));
  GPTBENCH_CUDA(cudaGetDeviceProperties(&device, ordinal));
  selections_.library = lt_.description() + " on " + device.name + (tf32 ? ", tf32" : "");
}

CublasLtGemm::~CublasLtGemm() {
  planned_.clear();
  lt_.cublasLtDestroy(handle_);
}

void CublasLtGemm::forget_plans() {
  planned_.clear();
}

std::unique_ptr<CublasLtGemm::Planned> CublasLtGemm::describe(const GemmKey& key, int fused) const {
  auto planned = std::make_unique<Planned>(lt_);
  const GemmDescription gemm = describe_gemm(key, fused);
  planned->gemm = gemm;
  const cublasComputeType_t compute =
      gemm.in == DType::f32 && tf32_ ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  lt_.check(lt_.cublasLtMatmulDescCreate(&planned->operation, compute, CUDA_R_32F),
            "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    lt_.check(
        lt_.cublasLtMatmulDescSetAttribute(planned->operation, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (gemm.fast_accumulation) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
  if (gemm.epilogue != GemmEpilogue::none)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogues[static_cast<size_t>(gemm.epilogue)]);
  if (has_bias(gemm.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type_of(gemm.out));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, address_of_alignment(array_alignment));
  }
  if (has_aux(gemm.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type_of(gemm.out));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gemm.ldd);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
        address_of_alignment(column_alignment(gemm.out, gemm.ldd)));
  }

  const auto layout = [&](cublasLtMatrixLayout_t& out, DType type, int64_t rows, int64_t columns,
                          int64_t ld) {
    lt_.check(lt_.cublasLtMatrixLayoutCreate(&out, data_type_of(type), static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(columns), ld),
              "cublasLtMatrixLayoutCreate");
  };
  layout(planned->a, gemm.in, gemm.transpose_a ? gemm.k : gemm.m,
         gemm.transpose_a ? gemm.m : gemm.k, gemm.lda);
  layout(planned->b, gemm.in_b, gemm.transpose_b ? gemm.n : gemm.k,
         gemm.transpose_b ? gemm.k : gemm.n, gemm.ldb);
  layout(planned->d, gemm.out, gemm.m, gemm.n, gemm.ldd);
  return planned;
}

std::vector<GemmSelection> CublasLtGemm::proposals(const Planned& planned, int fused,
                                                   int64_t workspace_bytes, int most) const {
  cublasLtMatmulPreference_t preference = nullptr;
  lt_.check(lt_.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    lt_.check(lt_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
              "cublasLtMatmulPreferenceSetAttribute");
  };
  const GemmDescription& gemm = planned.gemm;
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<uint64_t>(library_bytes(gemm, workspace_bytes)));
  // Parts of a sum are not rounded to the type of D before they are added up.
  if (gemm.out != DType::f32)
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const uint32_t d_alignment = column_alignment(gemm.out, gemm.ldd);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, column_alignment(gemm.in, gemm.lda));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, column_alignment(gemm.in_b, gemm.ldb));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d_alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(
      handle_, planned.operation, planned.a, planned.b, planned.d, planned.d, preference, most,
      results.data(), &found);
  lt_.cublasLtMatmulPreferenceDestroy(preference);
  std::vector<GemmSelection> selections;
  if (status != CUBLAS_STATUS_SUCCESS)
    return selections;  // not supported: the caller knows what to do
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    GemmSelection selection;
    selection.fused = fused;
    std::memcpy(selection.algorithm.data(), &result.algo, sizeof result.algo);
    selections.push_back(selection);
  }
  return selections;
}

CublasLtGemm::Planned& CublasLtGemm::plan_for(const GemmKey& key, int64_t workspace_bytes) {
  const auto found = planned_.find(key);
  if (found != planned_.end()) return *found->second;
  const auto chosen = selections_.by_key.find(key);
  std::unique_ptr<Planned> planned;
  if (chosen != selections_.by_key.end()) {
    planned = describe(key, chosen->second.fused);
    planned->selection = chosen->second;
    const cublasLtMatmulAlgo_t algorithm = algorithm_of(planned->selection);
    cublasLtMatmulHeuristicResult_t result;
    const cublasStatus_t status =
        lt_.cublasLtMatmulAlgoCheck(handle_, planned->operation, planned->a, planned->b, planned->d,
                                    planned->d, &algorithm, &result);
    if (status != CUBLAS_STATUS_SUCCESS ||
        static_cast<int64_t>(result.workspaceSize) > library_bytes(planned->gemm, workspace_bytes))
      throw Error(Exit::usage, "the library refuses the algorithm given for " + text_of(key) +
                                   "; use run.algorithms = '' (a timed search)");
  } else {
    std::vector<GemmSelection> first;
    for (int fused = preferred_fusion(key); fused >= 0 && first.empty(); --fused) {
      planned = describe(key, fused);
      first = proposals(*planned, fused, workspace_bytes, 1);
    }
    if (first.empty())
      throw Error(Exit::usage, lt_.description() + " has no algorithm for " + text_of(key) +
                                   " with " + format_bytes(workspace_bytes) + " of workspace");
    planned->selection = first.front();
    selections_.by_key.emplace(key, planned->selection);
  }
  return *planned_.emplace(key, std::move(planned)).first->second;
}

int CublasLtGemm::preferred_fusion(const GemmKey& key) const {
  int fused = 0;
  for (const auto& [other, selection] : selections_.by_key)
    if (key.gelu && other.gelu && other.op == key.op) fused = std::max(fused, selection.fused);
  return std::min(fused, max_fused(key));
}

void CublasLtGemm::place_bias_gradient(const Planned& planned, GemmArguments& arguments) const {
  const int64_t taken = bias_bytes(planned.gemm);
  if (taken == 0) return;
  GPTBENCH_CHECK(taken <= arguments.workspace.bytes, "workspace of the gradient of a bias");
  arguments.bias = arguments.workspace.data;
  arguments.workspace = arguments.workspace.rest(taken);
}

void CublasLtGemm::add_bias_gradient(const Planned& planned, const GemmArguments& arguments,
                                     void* dbias, Queue& queue, const KernelTable& kernels) const {
  const int64_t n = bias_elements(planned.gemm);
  if (planned.gemm.out == DType::f32)
    add_f32(stream_of(queue), static_cast<float*>(dbias), static_cast<const float*>(arguments.bias),
            n);
  else {
    Convert sum{};
    sum.y = dbias;
    sum.x = arguments.bias;
    sum.R = 1;
    sum.C = sum.y_row = sum.x_row = n;
    sum.y_type = DType::f32;
    sum.x_type = planned.gemm.out;
    sum.accumulate = true;
    kernels.convert(queue, sum);
  }
}

cublasStatus_t CublasLtGemm::run(const Planned& planned, const GemmArguments& arguments,
                                 cudaStream_t stream) const {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void* address) {
    lt_.check(
        lt_.cublasLtMatmulDescSetAttribute(planned.operation, attribute, &address, sizeof address),
        "cublasLtMatmulDescSetAttribute");
  };
  if (has_bias(planned.gemm.epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, arguments.bias);
  if (has_aux(planned.gemm.epilogue)) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, arguments.aux);
  if (arguments.a_scale != nullptr) set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, arguments.a_scale);
  if (arguments.b_scale != nullptr) set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, arguments.b_scale);
  const float alpha = 1.0f;
  const float beta = planned.gemm.accumulate && !arguments.assign ? 1.0f : 0.0f;
  const cublasLtMatmulAlgo_t algorithm = algorithm_of(planned.selection);
  return lt_.cublasLtMatmul(handle_, planned.operation, &alpha, arguments.a, planned.a, arguments.b,
                            planned.b, &beta, arguments.d, planned.d, arguments.d, planned.d,
                            &algorithm, arguments.workspace.data,
                            static_cast<size_t>(arguments.workspace.bytes), stream);
}

void CublasLtGemm::call(const GemmKey& key, const Planned& planned, const GemmArguments& arguments,
                        cudaStream_t stream) const {
  const cublasStatus_t status = run(planned, arguments, stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    lt_.check(status, ("cublasLtMatmul, " + text_of(key)).c_str());
}

void CublasLtGemm::forward(cudaStream_t stream, DType type, const LinearForward& l) {
  if (l.R == 0) return;
  if (l.fp8.left != nullptr) type = DType::fp8_e4m3;
  const GemmKey key = gemm_key(GemmOp::forward, type, l, l.bias);
  const Planned& planned = plan_for(key, l.workspace.bytes);
  GemmArguments arguments = arguments_of(l.weight, l.x, l.y, l.workspace, l.fp8);
  arguments.bias = l.bias;
  call(key, planned, arguments, stream);
}

void CublasLtGemm::backward_input(cudaStream_t stream, DType type, const LinearBackwardInput& l) {
  if (l.R == 0) return;
  if (l.fp8.left != nullptr) type = DType::fp8_e5m2;
  GPTBENCH_CHECK(l.fp8.left == nullptr || l.fp8.transposed, "W transposed for an fp8 product");
  const GemmKey key = gemm_key(GemmOp::backward_input, type, l, nullptr);
  const Planned& planned = plan_for(key, l.workspace.bytes);
  call(key, planned, arguments_of(l.weight, l.dy, l.dx, l.workspace, l.fp8), stream);
}

// The library assigns gradients of biases: fused ones pass through the workspace.
void CublasLtGemm::backward_weight(Queue& queue, DType type, const LinearBackwardWeight& l,
                                   const KernelTable& kernels) {
  if (l.R == 0) return;
  const cudaStream_t stream = stream_of(queue);
  if (l.fp8.left != nullptr) type = DType::fp8_e5m2;
  GPTBENCH_CHECK(l.fp8.left == nullptr || l.fp8.transposed,
                 "x and dy transposed for an fp8 product");
  const GemmKey key = gemm_key(GemmOp::backward_weight, type, l, l.dbias);
  const Planned& planned = plan_for(key, l.workspace.bytes);
  GemmArguments arguments = arguments_of(l.x, l.dy, l.dweight, l.workspace, l.fp8);
  arguments.assign = !l.accumulate;
  place_bias_gradient(planned, arguments);
  call(key, planned, arguments, stream);
  if (forms_bias_gradient(planned.gemm.epilogue))
    add_bias_gradient(planned, arguments, l.dbias, queue, kernels);
  else if (l.dbias != nullptr)
    kernels.bias_backward(queue, {l.dbias, l.dy, l.R, l.N, l.workspace});
}

void CublasLtGemm::gelu_forward(Queue& queue, DType type, const LinearGeluForward& f,
                                const KernelTable& kernels) {
  const LinearForward& l = f.linear;
  if (l.R == 0) return;
  const cudaStream_t stream = stream_of(queue);
  GemmKey key = gemm_key(GemmOp::forward, type, l, l.bias);
  key.gelu = true;
  const Planned& planned = plan_for(key, l.workspace.bytes);
  const bool fused = planned.selection.fused > 0;
  GemmArguments arguments = arguments_of(l.weight, l.x, fused ? f.activation : l.y, l.workspace);
  arguments.bias = l.bias;
  if (fused) arguments.aux = l.y;
  call(key, planned, arguments, stream);
  if (!fused) kernels.gelu_forward(queue, {f.activation, l.y, l.R * l.N});
}

void CublasLtGemm::gelu_backward_input(Queue& queue, DType type, const LinearGeluBackwardInput& f,
                                       const KernelTable& kernels) {
  const LinearBackwardInput& l = f.linear;
  if (l.R == 0) return;
  const cudaStream_t stream = stream_of(queue);
  GemmKey key = gemm_key(GemmOp::backward_input, type, l, f.dbias);
  key.gelu = true;
  const Planned& planned = plan_for(key, l.workspace.bytes);
  GemmArguments arguments = arguments_of(l.weight, l.dy, l.dx, l.workspace);
  arguments.aux = f.pre;
  place_bias_gradient(planned, arguments);
  call(key, planned, arguments, stream);
  finish_gelu_gradient(planned, arguments, f, queue, kernels);
}

// The parts of the gradients of GELU and of the bias that the library did not fuse.
void CublasLtGemm::finish_gelu_gradient(const Planned& planned, const GemmArguments& arguments,
                                        const LinearGeluBackwardInput& f, Queue& queue,
                                        const KernelTable& kernels) const {
  const LinearBackwardInput& l = f.linear;
  if (planned.selection.fused > 1)
    return add_bias_gradient(planned, arguments, f.dbias, queue, kernels);
  if (planned.selection.fused == 1) {
    if (f.dbias != nullptr) kernels.bias_backward(queue, {f.dbias, l.dx, l.R, l.K, l.workspace});
    return;
  }
  GeluBackward gelu{l.dx, l.dx, f.pre, l.R * l.K, l.K};
  gelu.fp8.sums = f.dbias;
  gelu.fp8.workspace = l.workspace;
  kernels.gelu_backward(queue, gelu);
}

}  // namespace gptbench
