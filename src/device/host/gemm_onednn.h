// GEMMs of the host through oneDNN (2.6 to 3.x), planned once per thread and shape: a call costs
// one hash look-up, no lock and no string.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/dtype.h"
#include "device/host_queue.h"
#include "device/kernels.h"

namespace gptbench {

// How bf16 GEMMs that are large, or larger than a block, are computed: by the library, or as f32
// GEMMs of converted blocks. On some processors the library's bf16 runs at half the rate of its f32
// (AVX512-BF16 without AMX), or is emulated. In both cases sums run in f32 and C is rounded once.
enum class Bf16Products : int { library, converted };
constexpr int64_t large_product = int64_t{1} << 26;  // m n k from which a GEMM is large

// Result of autotuning of the device of `queue` (HostAutotuning::reuse).
inline Bf16Products bf16_products_of(Queue& queue) {
  const Bf16Products* const chosen = static_cast<HostQueue&>(queue).bf16_products();
  return chosen != nullptr ? *chosen : Bf16Products::library;
}

// A factor of a GEMM: rows of the stored array are `ld` elements apart. The stored array is the
// factor's transpose where `transposed`.
struct GemmFactor {
  const void* data;
  int64_t ld;
  bool transposed;
  DType fp8_type = DType::fp8_e4m3;    // of fp8 factors
  const float* fp8_inverse = nullptr;  // of their scale: what the numbers are multiplied with
};

// C[m,n] = A[m,k] B[k,n] + bias[n], or C += A B where `accumulate`. A, B and bias are `in`, C (rows
// ldc apart) is `out`: f32 from f32, f32 or bf16 from bf16, f32 or f16 from f16; sums run in f32.
// bias may be null. Where `accumulate` it is null, and C is f32. Where both factors have an
// fp8_inverse they are fp8, and `in` is the type of the bias alone.
struct Gemm {
  DType in, out;
  int64_t m, n, k;
  GemmFactor a, b;
  void* c;
  int64_t ldc;
  const void* bias;
  bool accumulate;
  Bf16Products bf16_products = Bf16Products::library;
};

struct GemmSizes {
  int64_t m, n, k;
};
struct GemmResult {
  void* c;
  int64_t ldc;
  DType type;
};
// C = A B, without a bias.
inline Gemm make_gemm(DType in, const GemmSizes& sizes, const GemmFactor& a, const GemmFactor& b,
                      const GemmResult& result) {
  Gemm gemm{};
  gemm.in = in;
  gemm.out = result.type;
  gemm.m = sizes.m;
  gemm.n = sizes.n;
  gemm.k = sizes.k;
  gemm.a = a;
  gemm.b = b;
  gemm.c = result.c;
  gemm.ldc = result.ldc;
  return gemm;
}

// Runs `gemm` on the threads of set_gemm_threads(). `workspace` serves the library as scratch
// memory and holds converted blocks of the factors of f16 and, where it lacks that on this
// processor, of bf16 (8 MiB do, 2 MiB at less speed); gemm_workspace_bytes of plan/workspace.h
// suffice. FLOPs 2 m n k.
void run_gemm(const Gemm& gemm, const Workspace& workspace);

// The faster of the two on this processor, timed on 512 x 768 by 768 x 3072 in alternation (0.2 s);
// `converted` only where it saves a fifth of the time, so that repeated runs select the same.
Bf16Products measure_bf16_products(double (*clock_s)() = now_s);

// Threads of run_gemm() when called from this thread: follows Kokkos, so that a Serial Kokkos means
// one.
void set_gemm_threads(int threads);

// GEMMs run on one thread while it lives: for calls from inside a parallel loop.
class SingleThreadedGemms {
 public:
  SingleThreadedGemms();
  ~SingleThreadedGemms();
  SingleThreadedGemms(const SingleThreadedGemms&) = delete;
  SingleThreadedGemms& operator=(const SingleThreadedGemms&) = delete;

 private:
  int before_;
};

// "oneDNN 2.6.3 (avx512_core_bf16)".
std::string gemm_library_description();
// The library's name of the implementation that computes `gemm`: the tests' only way to see which
// of several equal ones a GEMM takes.
std::string gemm_implementation(const Gemm& gemm);

}  // namespace gptbench
