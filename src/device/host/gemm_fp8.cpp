#include "device/host/gemm_fp8.h"

#include <algorithm>

#include "base/error.h"
#include "base/fp8.h"
#include "base/units.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench {
namespace {

constexpr int64_t block_mn = fp8_gemm_block_mn, block_k = fp8_gemm_block_k;

// Rows [row, row + rows) and columns [column, column + columns) of the stored array as bfloat16,
// packed, the scale taken off: exact, since that is a power of two and bfloat16 has the exponents
// of binary32.
void decode_block(bfloat16* out, const GemmFactor& factor, int64_t row, int64_t rows,
                  int64_t column, int64_t columns) {
  const uint8_t* const in = static_cast<const uint8_t*>(factor.data) + row * factor.ld + column;
  const int64_t ld = factor.ld;
  const Fp8Format format = fp8_format(factor.fp8_type);
  const float inverse = factor.fp8_inverse[0];
  host::parallel("gptbench::fp8_decode", rows, [=](int64_t i) {
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j)
      simd::store(out[i * columns + j], inverse * fp8_decode(in[i * ld + j], format));
  });
}

// Initial sums of a block, [m0, m0 + m) x [n0, n0 + n) of C; store_block() writes them back.
void load_block(float* block, const Gemm& gemm, int64_t m0, int64_t m, int64_t n0, int64_t n) {
  const void* const from = gemm.accumulate ? gemm.c : gemm.bias;
  for (int64_t i = 0; i < m; ++i) {
    float* const out = block + i * n;
    const int64_t at = n0 + (gemm.accumulate ? (m0 + i) * gemm.ldc : 0);
    if (from == nullptr) {
      std::fill(out, out + n, 0.0f);
    } else if (gemm.out == DType::f32) {
      const float* const in = static_cast<const float*>(from) + at;
      std::copy(in, in + n, out);
    } else {
      const bfloat16* const in = static_cast<const bfloat16*>(from) + at;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) out[j] = simd::load(in[j]);
    }
  }
}

void store_block(const float* block, const Gemm& gemm, int64_t m0, int64_t m, int64_t n0,
                 int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    const float* const in = block + i * n;
    const int64_t at = (m0 + i) * gemm.ldc + n0;
    if (gemm.out == DType::f32) {
      std::copy(in, in + n, static_cast<float*>(gemm.c) + at);
    } else {
      bfloat16* const out = static_cast<bfloat16*>(gemm.c) + at;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) simd::store(out[j], in[j]);
    }
  }
}

}  // namespace

void run_gemm_fp8(const Gemm& gemm, const Workspace& workspace) {
  const int64_t factor_bytes = block_mn * block_k * size_of(DType::bf16);
  const int64_t sum_bytes = block_mn * block_mn * size_of(DType::f32);
  const int64_t needed = 2 * factor_bytes + sum_bytes;
  GPTBENCH_CHECK(needed <= workspace.bytes, "workspace of an fp8 product");
  char* const memory = static_cast<char*>(workspace.data);
  bfloat16* const a = reinterpret_cast<bfloat16*>(memory);
  bfloat16* const b = reinterpret_cast<bfloat16*>(memory + factor_bytes);
  float* const sum = reinterpret_cast<float*>(memory + 2 * factor_bytes);

  for (int64_t n0 = 0; n0 < gemm.n; n0 += block_mn)
    for (int64_t m0 = 0; m0 < gemm.m; m0 += block_mn) {
      const int64_t m = std::min(block_mn, gemm.m - m0), n = std::min(block_mn, gemm.n - n0);
      load_block(sum, gemm, m0, m, n0, n);
      for (int64_t k0 = 0; k0 < gemm.k; k0 += block_k) {
        const int64_t k = std::min(block_k, gemm.k - k0);
        if (gemm.a.transposed)
          decode_block(a, gemm.a, k0, k, m0, m);
        else
          decode_block(a, gemm.a, m0, m, k0, k);
        if (gemm.b.transposed)
          decode_block(b, gemm.b, n0, n, k0, k);
        else
          decode_block(b, gemm.b, k0, k, n0, n);
        Gemm part =
            make_gemm(DType::bf16, {m, n, k}, {a, gemm.a.transposed ? m : k, gemm.a.transposed},
                      {b, gemm.b.transposed ? k : n, gemm.b.transposed}, {sum, n, DType::f32});
        part.accumulate = true;
        part.bf16_products = gemm.bf16_products;
        run_gemm(part, workspace.rest(needed));
      }
      store_block(sum, gemm, m0, m, n0, n);
    }
}

}  // namespace gptbench
