// The matrix products of linear layers as cuBLAS has them: column-major; and the algorithms
// selected for them. Pure, without CUDA: an algorithm is 64 bytes that the library alone
// understands, and that another version of it does not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/dtype.h"
#include "cuda/tuning_cache.h"
#include "plan/plan.h"

namespace gptbench {

enum class GemmOp { forward, backward_input, backward_weight };

// A product of the kernel table (device/kernels.h: LinearForward and so on), up to its addresses.
struct GemmKey {
  GemmOp op = GemmOp::forward;
  // Type of activations and weights; sums and gradients of weights are f32. With fp8 it is the type
  // of x (e4m3) or dy (e5m2); W and, beside dy, x are e4m3, results bf16.
  DType type = DType::f32;
  int64_t R = 0, K = 0, N = 0;
  // forward: bias added; backward_weight: its gradient wanted; backward_input with gelu: that of
  // the layer before.
  bool bias = false;
  bool gelu = false;  // forward: GELU as well; backward_input: its gradient as well

  auto parts() const { return std::tie(op, type, R, K, N, bias, gelu); }
  template <class Text>
  void list_parts(Text& text);  // cuda/tuning_cache.h
  static GemmKey parse(const std::string& text);
};

// "linear_forward.R8192.K768.N3072.bf16.bias".
std::string text_of(const GemmKey& key);

struct GemmSelection {
  std::array<uint64_t, 8> algorithm{};
  int fused = 0;         // how many of the operations beside the GEMM are in it (describe_gemm)
  double time_us = 0.0;  // 0: not timed, the library's first proposal
  int tried = 0;         // algorithms timed

  static constexpr TuningKind kind = {"gemm", "the selected GEMM algorithms",
                                      "a selected GEMM algorithm"};
  bool parse(const std::string& text);
};
std::string text_of(const GemmSelection& selection);
using GemmSelections = TuningCache<GemmKey, GemmSelection>;

enum class GemmArray { x, weight, dy };
// Operations that the library fuses into the GEMM. `gelu`: D = gelu(AB), the product itself goes to
// an array apart (aux), and with `gelu_bias` has a bias added first; `gelu_gradient`: D = AB
// gelu'(aux), with `gelu_bias_gradient` and the sums of the columns of D. aux is laid out as D.
enum class GemmEpilogue {
  none,
  bias,
  bias_gradient,
  gelu,
  gelu_bias,
  gelu_gradient,
  gelu_bias_gradient
};
inline bool has_aux(GemmEpilogue epilogue) {
  return epilogue >= GemmEpilogue::gelu;
}
inline bool adds_bias(GemmEpilogue epilogue) {
  return epilogue == GemmEpilogue::bias || epilogue == GemmEpilogue::gelu_bias;
}
inline bool forms_bias_gradient(GemmEpilogue epilogue) {
  return epilogue == GemmEpilogue::bias_gradient || epilogue == GemmEpilogue::gelu_bias_gradient;
}

// D[m,n] = op(A) op(B), or D += where `accumulate`; all column-major, columns ld elements apart.
// op(A) is [m,k]: A as it lies in memory is that, or [k,m] where `transpose_a`; B likewise.
//
// A row-major array [R,N] is the column-major array [N,R], ld N. So y[R,N] = x W^T is,
// column-major, y'[N,R] = W'^T x' with W'[K,N] and x'[K,R]; dx = dy W is dx'[K,R] = W' dy'; and dW
// = dy^T x is dW'[K,N] = x' dy'^T. Biases run along the rows of D (`bias`: length m), gradients of
// biases along its columns (`bias_gradient`: sums of op(B) over k, length n) or rows
// (`gelu_bias_gradient`: sums of D over n, length m, in the type of D).
//
// fp8 factors are multiplied along consecutive elements of both alone (transpose_a, not
// transpose_b): W for dx, and x and dy for dW, come transposed (device/kernels.h, Fp8Scales).
struct GemmDescription {
  GemmArray a = GemmArray::x, b = GemmArray::x;
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldd = 0;
  DType in = DType::f32, in_b = DType::f32, out = DType::f32;  // of A, B and D
  bool accumulate = false;
  // fp8: the tensor cores' own sums of few bits, as Transformer Engine has them in forward GEMMs.
  bool fast_accumulation = false;
  GemmEpilogue epilogue = GemmEpilogue::none;
};

// `fused`: how many of the operations beside the GEMM the call forms. backward_weight: the gradient
// of the bias. With GELU: that or its gradient, then the gradient of the bias.
GemmDescription describe_gemm(const GemmKey& key, int fused);
// How many there are.
inline int max_fused(const GemmKey& key) {
  const bool gradient_of_bias = key.bias && key.op != GemmOp::forward;
  return (key.gelu ? 1 : 0) + (gradient_of_bias ? 1 : 0);
}

// The products of a step of `plan`, each once.
std::vector<GemmKey> gemms_of(const Plan& plan);

}  // namespace gptbench
