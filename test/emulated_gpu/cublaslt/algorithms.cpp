#include "emulated_gpu/cublaslt/algorithms.h"

#include <algorithm>
#include <vector>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

constexpr uint32_t magic = 0x474c5431;
constexpr uint32_t unknown_alignment = 256;  // the preferences' default

// FNV-1a, of numbers.
uint32_t hash_of(std::initializer_list<int64_t> numbers) {
  uint32_t hash = 2166136261u;
  for (const int64_t number : numbers)
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ static_cast<uint32_t>((number >> (8 * byte)) & 0xff)) * 16777619u;
  return hash;
}

uint32_t kind_of(const Problem& p) {
  return hash_of({p.a, p.b, p.c, p.d, p.transpose_a, p.transpose_b, p.tf32, p.epilogue});
}

// What an algorithm wants addresses and rows to be multiples of: whole vectors, or elements.
bool is_aligned(const Algorithm& a, const Problem& p, int64_t vector) {
  const auto fits = [&](uint32_t promised, cudaDataType_t type, int64_t ld) {
    const int64_t wanted = std::max(vector, bytes_of(type));
    return promised % wanted == 0 && ld * bytes_of(type) % wanted == 0;
  };
  return fits(a.align_a, p.a, p.lda) && fits(a.align_b, p.b, p.ldb) &&
         fits(a.align_c, p.c, p.ldc) && fits(a.align_d, p.d, p.ldd) &&
         (!(p.reads_bias() || p.writes_bias()) || fits(a.align_bias, p.bias, vector)) &&
         (!p.has_aux() || fits(a.align_aux, p.aux, p.ldaux));
}

// The alignment that "routines that don't dereference this pointer ... depend on its value to
// determine".
uint32_t alignment_of(const void* pointer) {
  const uint64_t address = reinterpret_cast<uintptr_t>(pointer);
  if (address == 0) return unknown_alignment;
  return static_cast<uint32_t>(std::min<uint64_t>(address & (~address + 1), unknown_alignment));
}

struct Variant {
  int id;
  int64_t vector;  // bytes that it loads at a time
  int parts;
  cublasLtReductionScheme_t reduction;
};
constexpr Variant variants[] = {
    {66, 16, 1, CUBLASLT_REDUCTION_SCHEME_NONE},
    {67, 16, 3, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
    {68, 16, 2, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE},
    {69, 16, 2, CUBLASLT_REDUCTION_SCHEME_INPLACE},
    {21, 1, 1, CUBLASLT_REDUCTION_SCHEME_NONE},
    {23, 1, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
};
constexpr int refused_id = 71, unsupported_id = 72;

bool may_run(const Variant& v, const Algorithm& a, const Problem& p) {
  if (p.fp8() && v.vector < 16) return false;
  if (p.k < 32 * v.parts && v.parts > 1) return false;
  if (v.reduction == CUBLASLT_REDUCTION_SCHEME_INPLACE && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return false;
  return is_aligned(a, p, v.vector);
}

Algorithm blank(const Problem& p) {
  Algorithm a{};
  a.magic = magic;
  a.kind = kind_of(p);
  a.parts = 1;
  return a;
}

cublasLtMatmulHeuristicResult_t result_of(const Algorithm& a, const Problem& p) {
  cublasLtMatmulHeuristicResult_t result{};
  std::memcpy(&result.algo, &a, sizeof a);
  result.workspaceSize = workspace_of(a, p);
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1.0f;
  return result;
}

// In an order that depends on the product, so that the first of them is not always the same.
std::vector<cublasLtMatmulHeuristicResult_t> proposals(const Operation& o, const Preference& wishes,
                                                       const Problem& p) {
  const auto allowed = wishes.get<uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  const auto schemes = wishes.get<uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  Algorithm a = blank(p);
  a.align_a = wishes.get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  a.align_b = wishes.get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  a.align_c = wishes.get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  a.align_d = wishes.get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  a.align_bias = alignment_of(o.get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  a.align_aux = alignment_of(o.get<const void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  for (const Variant& v : variants) {
    if (!may_run(v, a, p)) continue;
    if (v.reduction != CUBLASLT_REDUCTION_SCHEME_NONE && (schemes & v.reduction) == 0) continue;
    a.id = v.id;
    a.parts = v.parts;
    a.reduction = v.reduction;
    if (workspace_of(a, p) <= allowed) found.push_back(result_of(a, p));
  }
  if (found.empty()) return found;
  std::rotate(found.begin(), found.begin() + hash_of({p.m, p.n, p.k, a.kind}) % found.size(),
              found.end());
  // "Inspect .state", and "CUBLAS_STATUS_SUCCESS doesn't fully guarantee algo will run".
  a = blank(p);
  a.id = unsupported_id;
  found.insert(found.begin() + 1, result_of(a, p));
  found[1].state = CUBLAS_STATUS_NOT_SUPPORTED;
  std::memcpy(&a, &found[0].algo, sizeof a);
  a.id = refused_id;
  a.refuses = 1;
  found.insert(found.begin() + 2, result_of(a, p));
  return found;
}

}  // namespace

size_t workspace_of(const Algorithm& a, const Problem& p) {
  if (a.parts == 1) return 0;
  if (a.reduction == CUBLASLT_REDUCTION_SCHEME_INPLACE) return 4096;  // counters
  const int64_t element = a.reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? 4 : bytes_of(p.d);
  return static_cast<size_t>(a.parts * p.m * p.n * element);
}

cublasStatus_t read_algorithm(const cublasLtMatmulAlgo_t& algo, const Problem& p, Algorithm& a) {
  std::memcpy(&a, &algo, sizeof a);
  if (a.magic != magic || a.kind != kind_of(p)) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.id == unsupported_id) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a.id == refused_id) return CUBLAS_STATUS_SUCCESS;
  for (const Variant& v : variants)
    if (v.id == a.id && v.parts == a.parts && v.reduction == a.reduction)
      return may_run(v, a, p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_INVALID_VALUE;
}

Algorithm plain_algorithm(const Problem& p) {
  Algorithm a = blank(p);
  a.id = p.fp8() ? 66 : 21;
  const auto wanted = [&](cudaDataType_t type) {
    return p.fp8() ? 16u : static_cast<uint32_t>(bytes_of(type));
  };
  a.align_a = wanted(p.a);
  a.align_b = wanted(p.b);
  a.align_c = wanted(p.c);
  a.align_d = wanted(p.d);
  a.align_bias = wanted(p.bias);
  a.align_aux = wanted(p.aux);
  return a;
}

}  // namespace gptbench::emulation

using namespace gptbench::emulation;

namespace {

// Checks a call that names no layout of its own for C.
cublasStatus_t described(cublasLtHandle_t handle, const Operation* o, const Layout* a,
                         const Layout* b, const Layout* c, const Layout* d, const char* call,
                         Problem& problem) {
  if (!is_handle(handle, call)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (o == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  return describe(*o, *a, *b, *c, *d, problem);
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  constexpr const char* call = "cublasLtMatmulAlgoGetHeuristic";
  if (most <= 0 || results == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  const Operation* const o = operation_of(operation, call);
  const Preference* const wishes = preference_of(preference, call);
  if (wishes == nullptr ||
      wishes->get<uint32_t>(CUBLASLT_MATMUL_PREF_SEARCH_MODE) != CUBLASLT_SEARCH_BEST_FIT)
    return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  const cublasStatus_t status = described(handle, o, layout_of(a, call), layout_of(b, call),
                                          layout_of(c, call), layout_of(d, call), call, problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const std::vector<cublasLtMatmulHeuristicResult_t> found = proposals(*o, *wishes, problem);
  if (found.empty()) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(most, static_cast<int>(found.size()));
  std::copy_n(found.begin(), *count, results);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  constexpr const char* call = "cublasLtMatmulAlgoCheck";
  if (algo == nullptr || result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  cublasStatus_t status =
      described(handle, operation_of(operation, call), layout_of(a, call), layout_of(b, call),
                layout_of(c, call), layout_of(d, call), call, problem);
  Algorithm algorithm{};
  if (status == CUBLAS_STATUS_SUCCESS) status = read_algorithm(*algo, problem, algorithm);
  result->state = status;
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  result->workspaceSize = workspace_of(algorithm, problem);
  result->wavesCount = 1.0f;
  return status;
}
}
