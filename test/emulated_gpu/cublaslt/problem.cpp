#include "emulated_gpu/cublaslt/problem.h"

#include <initializer_list>

namespace gptbench::emulation {
namespace {

bool is_known(cudaDataType_t type) {
  return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F || Problem::is_fp8(type);
}

bool is_sound(const Layout& layout) {
  constexpr uint64_t most = 0x7fffffff;  // "usually only values that can be expressed as int32_t"
  return layout.rows > 0 && layout.columns > 0 && layout.rows <= most && layout.columns <= most &&
         layout.ld >= static_cast<int64_t>(layout.rows);
}

// Combinations of types that the table of cublasLtMatmul() has for CUBLAS_COMPUTE_32F.
bool has_kernels(const Problem& p) {
  if (p.c != p.d) return false;
  if (p.fp8()) {
    const bool both_e5m2 = p.a == CUDA_R_8F_E5M2 && p.b == CUDA_R_8F_E5M2;
    return Problem::is_fp8(p.b) && !both_e5m2 && !Problem::is_fp8(p.d);
  }
  return p.a == p.b && (p.d == p.a || p.d == CUDA_R_32F);
}

// The type of biases and their gradients: that of D, but bf16 beside fp8 factors and f32 results.
cudaDataType_t type_of_bias(const Problem& p) {
  return p.fp8() && p.d == CUDA_R_32F ? CUDA_R_16BF : p.d;
}

cublasStatus_t check_fp8(const Problem& p) {
  if (!p.transpose_a || p.transpose_b) return CUBLAS_STATUS_NOT_SUPPORTED;  // "TN" alone
  // Rows of all matrices are multiples of 16 bytes. n is the number of columns alone.
  for (const int64_t size : {p.m, p.k, p.lda, p.ldb, p.ldc, p.ldd})
    if (size % 16 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && p.epilogue != CUBLASLT_EPILOGUE_BIAS)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

// Pointers and modes that gptbench does not use are at their defaults.
bool is_emulated(const Operation& o) {
  for (const int attribute :
       {CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_MATMUL_DESC_TRANSC,
        CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
        CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
        CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
        CUBLASLT_MATMUL_DESC_C_SCALE_MODE, CUBLASLT_MATMUL_DESC_D_SCALE_MODE,
        CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE,
        CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR})
    if (o.values[static_cast<size_t>(attribute)] != 0) return false;
  return o.get<int32_t>(CUBLASLT_MATMUL_DESC_FILL_MODE) == CUBLAS_FILL_MODE_FULL;
}

bool is_set(const Operation& o, int pointer) {
  return o.get<const void*>(pointer) != nullptr;
}

// Scales and maxima are of fp8 arrays alone; "if set for an unsupported combination ... will return
// CUBLAS_INVALID_VALUE".
bool scales_fit(const Operation& o, const Problem& p) {
  for (const int pointer :
       {CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
        CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
        CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER})
    if (is_set(o, pointer)) return false;
  return p.fp8() || !(is_set(o, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) ||
                      is_set(o, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER));
}

}  // namespace

int64_t bytes_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : Problem::is_fp8(type) ? 1 : 2;
}

cublasStatus_t describe(const Operation& o, const Layout& a, const Layout& b, const Layout& c,
                        const Layout& d, Problem& p) {
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (!is_sound(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_known(layout->type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (const int operand : {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB}) {
    const int32_t op = o.get<int32_t>(operand);
    if (op != CUBLAS_OP_N && op != CUBLAS_OP_T) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!is_emulated(o)) return CUBLAS_STATUS_NOT_SUPPORTED;
  p.a = a.type;
  p.b = b.type;
  p.c = c.type;
  p.d = d.type;
  p.transpose_a = o.get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T;
  p.transpose_b = o.get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T;
  p.fast_accumulation = o.get<int8_t>(CUBLASLT_MATMUL_DESC_FAST_ACCUM) != 0;
  p.m = static_cast<int64_t>(d.rows);
  p.n = static_cast<int64_t>(d.columns);
  p.k = static_cast<int64_t>(p.transpose_a ? a.rows : a.columns);
  p.lda = a.ld;
  p.ldb = b.ld;
  p.ldc = c.ld;
  p.ldd = d.ld;
  const auto has_shape = [](const Layout& layout, bool transposed, int64_t rows, int64_t columns) {
    return layout.rows == static_cast<uint64_t>(transposed ? columns : rows) &&
           layout.columns == static_cast<uint64_t>(transposed ? rows : columns);
  };
  if (!has_shape(a, p.transpose_a, p.m, p.k) || !has_shape(b, p.transpose_b, p.k, p.n) ||
      !has_shape(c, false, p.m, p.n))
    return CUBLAS_STATUS_INVALID_VALUE;

  const int32_t compute = o.get<int32_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  p.tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if ((compute != CUBLAS_COMPUTE_32F && !p.tf32) ||
      o.get<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE) != CUDA_R_32F || !has_kernels(p) ||
      (p.tf32 && p.a != CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!scales_fit(o, p)) return CUBLAS_STATUS_INVALID_VALUE;

  p.epilogue = static_cast<cublasLtEpilogue_t>(o.get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE));
  switch (p.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      break;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const auto type_or = [&](int attribute, cudaDataType_t usual) {
    const int32_t given = o.get<int32_t>(attribute);
    return given == -1 ? usual : static_cast<cudaDataType_t>(given);
  };
  p.bias = type_or(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of_bias(p));
  p.aux = type_or(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, p.d);
  if ((p.reads_bias() || p.writes_bias()) && p.bias != type_of_bias(p))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  p.ldaux = o.get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  if (p.has_aux()) {
    if (p.aux != p.d) return CUBLAS_STATUS_INVALID_VALUE;
    if (p.ldaux % 8 != 0 || p.ldaux < p.m) return CUBLAS_STATUS_INVALID_VALUE;
  }
  return p.fp8() ? check_fp8(p) : CUBLAS_STATUS_SUCCESS;
}

}  // namespace gptbench::emulation
