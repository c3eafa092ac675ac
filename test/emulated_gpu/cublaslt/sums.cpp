#include "emulated_gpu/cublaslt/sums.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/dtype.h"
#include "base/fp8.h"

namespace gptbench::emulation {
namespace {

// x[i] = base[at + i stride], i < count.
void load_line(cudaDataType_t type, const void* base, int64_t at, int64_t stride, int64_t count,
               float* x) {
  const auto each = [&](const auto* elements, const auto& value_of) {
    for (int64_t i = 0; i < count; ++i) x[i] = value_of(elements[at + i * stride]);
  };
  switch (type) {
    case CUDA_R_16BF:
      return each(static_cast<const bfloat16*>(base), [](bfloat16 v) { return float(v); });
    case CUDA_R_16F:
      return each(static_cast<const float16*>(base), [](float16 v) { return float(v); });
    case CUDA_R_8F_E4M3:
      return each(static_cast<const uint8_t*>(base),
                  [](uint8_t v) { return fp8_decode(v, fp8_format(DType::fp8_e4m3)); });
    case CUDA_R_8F_E5M2:
      return each(static_cast<const uint8_t*>(base),
                  [](uint8_t v) { return fp8_decode(v, fp8_format(DType::fp8_e5m2)); });
    default:
      return each(static_cast<const float*>(base), [](float v) { return v; });
  }
}

// To 10 bits of fraction, to nearest, ties away from zero (PTX ISA, cvt.rna.tf32.f32).
float to_tf32(float value) {
  uint32_t u;
  std::memcpy(&u, &value, sizeof u);
  if ((u & 0x7f800000u) == 0x7f800000u) return value;
  u = (u + 0x1000u) & ~0x1fffu;
  std::memcpy(&value, &u, sizeof u);
  return value;
}

// Tiles of D; factors lie beside one another, [l][rows] and [l][columns].
constexpr int64_t rows = 32, columns = 4;

// Elements of one factor, `wide` at a time: panel[l][i] = op(X)[first + i, k_begin + l], 0 beyond
// `size`. `by_rows`: those of one l lie one after the other in memory.
void pack(const Problem& p, cudaDataType_t type, const void* x, int64_t ld, bool by_rows,
          int64_t first, int64_t size, int64_t k_begin, int64_t k_end, int64_t wide,
          std::vector<float>& line, float* panel) {
  const int64_t taken = std::min(wide, size - first), length = k_end - k_begin;
  std::fill_n(panel, length * wide, 0.0f);
  if (by_rows) {
    for (int64_t l = 0; l < length; ++l)
      load_line(type, x, first + (k_begin + l) * ld, 1, taken, panel + l * wide);
  } else {
    line.resize(static_cast<size_t>(length));
    for (int64_t i = 0; i < taken; ++i) {
      load_line(type, x, k_begin + (first + i) * ld, 1, length, line.data());
      for (int64_t l = 0; l < length; ++l) panel[l * wide + i] = line[static_cast<size_t>(l)];
    }
  }
  if (p.tf32)
    for (int64_t i = 0; i < length * wide; ++i) panel[i] = to_tf32(panel[i]);
}

void add_tile(const float* a, const float* b, int64_t length, float (&sums)[columns][rows]) {
  for (int64_t l = 0; l < length; ++l)
    for (int64_t j = 0; j < columns; ++j) {
      const float factor = b[l * columns + j];
#pragma omp simd
      for (int64_t i = 0; i < rows; ++i) sums[j][i] += a[l * rows + i] * factor;
    }
}

// 2^(e - 13), e the exponent of `largest`; 0 of 0.
float quantum_of(float largest) {
  uint32_t u;
  std::memcpy(&u, &largest, sizeof u);
  const uint32_t exponent = u >> 23;
  const uint32_t bits = exponent > 13u ? (exponent - 13u) << 23 : 0u;
  float quantum;
  std::memcpy(&quantum, &bits, sizeof quantum);
  return quantum;
}

// Cut off towards zero; 0 of what is no number, which the caller sees to.
int32_t units_of(float value, float inverse) {
  const float units = value * inverse;
  return std::abs(units) < 0x1p15f ? static_cast<int32_t>(units) : 0;
}

// One instruction: sum[i] = sum[i] + sum over l of a[l][i] b[l], all cut off alike.
void multiply_fp8(const float* a, const float* b, int64_t length, float* sum) {
  float largest[rows], plain[rows];
  for (int64_t i = 0; i < rows; ++i) {
    plain[i] = sum[i];
    largest[i] = std::abs(sum[i]);
  }
  for (int64_t l = 0; l < length; ++l) {
    const float factor = b[l * columns];
    for (int64_t i = 0; i < rows; ++i) {
      const float product = a[l * rows + i] * factor;
      plain[i] += product;
      largest[i] = std::max(largest[i], std::abs(product));
    }
  }
  float quantum[rows], inverse[rows];
  int32_t units[rows];
  for (int64_t i = 0; i < rows; ++i) {
    quantum[i] = quantum_of(largest[i]);
    inverse[i] = quantum[i] > 0.0f ? 1.0f / quantum[i] : 0.0f;
    units[i] = units_of(sum[i], inverse[i]);
  }
  for (int64_t l = 0; l < length; ++l) {
    const float factor = b[l * columns];
    for (int64_t i = 0; i < rows; ++i) units[i] += units_of(a[l * rows + i] * factor, inverse[i]);
  }
  // Infinity and what is no number have no units.
  for (int64_t i = 0; i < rows; ++i)
    sum[i] = std::isfinite(plain[i]) ? static_cast<float>(units[i]) * quantum[i] : plain[i];
}

void add_tile_fp8(const Problem& p, const float* a, const float* b, int64_t length,
                  float (&sums)[columns][rows]) {
  constexpr int64_t instruction = 32;
  const int64_t window = p.fast_accumulation ? length : 4 * instruction;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t begin = 0; begin < length; begin += window) {
      float partial[rows] = {};
      const int64_t end = std::min(length, begin + window);
      for (int64_t l = begin; l < end; l += instruction)
        multiply_fp8(a + l * rows, b + l * columns + j, std::min(instruction, end - l), partial);
      for (int64_t i = 0; i < rows; ++i) sums[j][i] += partial[i];
    }
}

}  // namespace

void form_sums(const Problem& p, const void* a, const void* b, int64_t k_begin, int64_t k_end,
               float* sums) {
  const int64_t length = k_end - k_begin;
  const int64_t panels = (p.n + columns - 1) / columns;
  std::vector<float> left(static_cast<size_t>(length * rows)), line;
  std::vector<float> right(static_cast<size_t>(panels * length * columns));
  for (int64_t j = 0; j < panels; ++j)
    pack(p, p.b, b, p.ldb, p.transpose_b, j * columns, p.n, k_begin, k_end, columns, line,
         right.data() + j * length * columns);
  for (int64_t i0 = 0; i0 < p.m; i0 += rows) {
    pack(p, p.a, a, p.lda, !p.transpose_a, i0, p.m, k_begin, k_end, rows, line, left.data());
    for (int64_t j = 0; j < panels; ++j) {
      float tile[columns][rows] = {};
      const float* const panel = right.data() + j * length * columns;
      if (p.fp8())
        add_tile_fp8(p, left.data(), panel, length, tile);
      else
        add_tile(left.data(), panel, length, tile);
      for (int64_t jj = 0; jj < std::min(columns, p.n - j * columns); ++jj)
        std::copy_n(tile[jj], std::min(rows, p.m - i0), sums + i0 + (j * columns + jj) * p.m);
    }
  }
}

void sum_factor(const Problem& p, bool of_a, const void* factor, float* sums) {
  const int64_t size = of_a ? p.m : p.n, ld = of_a ? p.lda : p.ldb;
  const bool by_rows = of_a ? !p.transpose_a : p.transpose_b;
  const cudaDataType_t type = of_a ? p.a : p.b;
  std::fill_n(sums, size, 0.0f);
  std::vector<float> line(static_cast<size_t>(by_rows ? size : p.k));
  if (by_rows) {
    for (int64_t l = 0; l < p.k; ++l) {
      load_line(type, factor, l * ld, 1, size, line.data());
      for (int64_t i = 0; i < size; ++i) sums[i] += line[static_cast<size_t>(i)];
    }
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    load_line(type, factor, i * ld, 1, p.k, line.data());
    for (const float each : line) sums[i] += each;
  }
}

float load(cudaDataType_t type, const void* base, int64_t index) {
  float value;
  load_line(type, base, index, 1, 1, &value);
  return value;
}

void store(cudaDataType_t type, void* base, int64_t index, float value) {
  switch (type) {
    case CUDA_R_16BF:
      static_cast<bfloat16*>(base)[index] = bfloat16(value);
      return;
    case CUDA_R_16F:
      static_cast<float16*>(base)[index] = float16(value);
      return;
    default:
      static_cast<float*>(base)[index] = value;
      return;
  }
}

}  // namespace gptbench::emulation
