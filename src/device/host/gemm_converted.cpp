#include "device/host/gemm_converted.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

// f(i), i = 0 .. rows - 1, on the threads of the GEMM.
template <class Function>
void for_rows(int64_t rows, int threads, const Function& f) {
  if (threads > 1)
    host::parallel("gemm::convert", rows, f);
  else
    for (int64_t i = 0; i < rows; ++i) f(i);
}

// Rows [row, row + rows) and columns [column, column + columns) of the stored array as f32, packed.
template <class A>
void convert_block(float* out, const GemmFactor& factor, int64_t row, int64_t rows, int64_t column,
                   int64_t columns, int threads) {
  const GemmFactor f = factor;
  for_rows(rows, threads, [=](int64_t i) {
    const A* const in = static_cast<const A*>(f.data) + (row + i) * f.ld + column;
    float* const out_row = out + i * columns;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) out_row[j] = simd::load(in[j]);
  });
}

// Initial values of c[m, ldc], columns from n0 of the result: bias or zeros.
template <class A>
void begin_block(float* c, int64_t ldc, const Gemm& gemm, int64_t m, int64_t n0, int64_t n,
                 int threads) {
  const A* const bias = static_cast<const A*>(gemm.bias);
  for_rows(m, threads, [=](int64_t i) {
    float* const row = c + i * ldc;
    if (bias == nullptr) {
      std::fill_n(row, n, 0.0f);
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) row[j] = simd::load(bias[n0 + j]);
  });
}

template <class A>
void run_blocks(const Gemm& gemm, const Workspace& workspace, int threads) {
  // The attention's tiles have less workspace; they are smaller, too.
  const bool roomy = workspace.bytes >= 8 * MiB;
  const int64_t block_mn = roomy ? gemm_block_mn : gemm_small_block_mn;
  const int64_t block_k = gemm_block_k;
  const int64_t a_size = block_mn * block_k, b_size = a_size;
  const int64_t c_size = block_mn * block_mn;
  const int64_t needed = (a_size + b_size + c_size) * static_cast<int64_t>(sizeof(float));
  GPTBENCH_CHECK(needed <= workspace.bytes,
                 "converting factors of 2 bytes needs " + std::to_string(needed) +
                     " bytes of workspace, there are " + std::to_string(workspace.bytes));
  float* const a = static_cast<float*>(workspace.data);
  float* const b = a + a_size;
  float* const block = b + b_size;

  for (int64_t m0 = 0; m0 < gemm.m; m0 += block_mn)
    for (int64_t n0 = 0; n0 < gemm.n; n0 += block_mn) {
      const int64_t m = std::min(block_mn, gemm.m - m0);
      const int64_t n = std::min(block_mn, gemm.n - n0);
      const int64_t c0 = m0 * gemm.ldc + n0;
      const bool direct = gemm.out == DType::f32;
      float* const c = direct ? static_cast<float*>(gemm.c) + c0 : block;
      const int64_t ldc = direct ? gemm.ldc : n;
      if (!gemm.accumulate) begin_block<A>(c, ldc, gemm, m, n0, n, threads);
      for (int64_t k0 = 0; k0 < gemm.k; k0 += block_k) {
        const int64_t k = std::min(block_k, gemm.k - k0);
        if (gemm.a.transposed)
          convert_block<A>(a, gemm.a, k0, k, m0, m, threads);
        else
          convert_block<A>(a, gemm.a, m0, m, k0, k, threads);
        if (gemm.b.transposed)
          convert_block<A>(b, gemm.b, n0, n, k0, k, threads);
        else
          convert_block<A>(b, gemm.b, k0, k, n0, n, threads);
        Gemm part =
            make_gemm(DType::f32, {m, n, k}, {a, gemm.a.transposed ? m : k, gemm.a.transposed},
                      {b, gemm.b.transposed ? k : n, gemm.b.transposed}, {c, ldc, DType::f32});
        part.accumulate = true;
        run_gemm(part, workspace.rest(needed));
      }
      if (direct) continue;
      A* const stored = static_cast<A*>(gemm.c) + c0;
      const int64_t ld_stored = gemm.ldc;
      for_rows(m, threads, [=](int64_t i) {
        A* const out = stored + i * ld_stored;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) simd::store(out[j], c[i * ldc + j]);
      });
    }
}

}  // namespace

void run_converted(const Gemm& gemm, const Workspace& workspace, int threads) {
  GPTBENCH_CHECK(!gemm.accumulate || gemm.out == DType::f32, "sums of products are f32");
  if (gemm.in == DType::f16)
    run_blocks<float16>(gemm, workspace, threads);
  else
    run_blocks<bfloat16>(gemm, workspace, threads);
}

Bf16Products measure_bf16_products(double (*clock_s)()) {
  constexpr int64_t R = 512, K = 768, N = 3072;
  // 1.0 in all factors: the rate does not depend on values that are no denormals.
  const std::vector<bfloat16> x(static_cast<size_t>(R * K), bfloat16(1.0f));
  const std::vector<bfloat16> weight(static_cast<size_t>(N * K), bfloat16(1.0f));
  std::vector<bfloat16> y(static_cast<size_t>(R * N));
  std::vector<char> scratch(static_cast<size_t>(gemm_workspace_bytes));
  Gemm gemm = make_gemm(DType::bf16, {R, N, K}, {x.data(), K, false}, {weight.data(), K, true},
                        {y.data(), N, DType::bf16});
  double best_s[2] = {1e30, 1e30};
  for (int repeat = 0; repeat < 4; ++repeat)
    for (const Bf16Products products : {Bf16Products::library, Bf16Products::converted}) {
      gemm.bf16_products = products;
      const double start_s = clock_s();
      run_gemm(gemm, {scratch.data(), gemm_workspace_bytes});
      const double time_s = clock_s() - start_s;
      double& best = best_s[static_cast<int>(products)];
      if (repeat > 0) best = std::min(best, time_s);  // the first plans
    }
  return best_s[1] < 0.8 * best_s[0] ? Bf16Products::converted : Bf16Products::library;
}

}  // namespace gptbench
