// LayerNorm (`centred`) and RMSNorm of bf16 rows, two elements at a time (simd_map.h). Rows and
// parameters that several passes read are kept as floats: the first elements of all pairs, then the
// second ones.
#pragma once

#include <cmath>

#include "device/arguments_norm.h"
#include "device/host/fp8.h"
#include "device/host/parallel.h"
#include "device/host/simd_map.h"
#include "device/host/simd_math.h"

namespace gptbench::host {

// Whether rows of C elements are processed in pairs.
constexpr int64_t max_paired_row = 4096;
inline bool is_paired_row(int64_t C) {
  return C % 2 == 0 && C <= max_paired_row;
}
using FloatRow = float[max_paired_row];

// Row r of an array of rows of C elements.
template <class A, class P>
A* row_of(P* array, int64_t r, int64_t C) {
  return static_cast<A*>(array) + r * C;
}

// n even.
inline void split(float* out, const bfloat16* in, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n / 2; ++i) {
    const simd::Two v = simd::load_two(in + 2 * i);
    out[i] = v.first;
    out[n / 2 + i] = v.second;
  }
}

// One row of y = (x - mean) rstd gamma + beta; mean and beta are not used where not `centred`.
template <bool centred>
void normalise_paired_row(bfloat16* y, float* mean, float& rstd, const bfloat16* x,
                          const float* gamma, const float* beta, int64_t C, double epsilon) {
  const int64_t half = C / 2;
  FloatRow buffer;
  float* const row = buffer;
  const auto take = [=](int64_t i) __attribute__((always_inline)) {
    const simd::Two v = simd::load_two(x + 2 * i);
    row[i] = v.first;
    row[half + i] = v.second;
    return centred ? v.first + v.second : v.first * v.first + v.second * v.second;
  };
  float squares = simd::sum_of(half, take);
  float m = 0.0f;
  if constexpr (centred) {
    m = squares / static_cast<float>(C);
    squares = simd::sum_of(
        C, [=](int64_t i) __attribute__((always_inline)) {
          const float deviation = row[i] - m;
          return deviation * deviation;
        });
  }
  const float s = static_cast<float>(
      1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(C) + epsilon));
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    float first = (row[i] - m) * s * gamma[i];
    float second = (row[half + i] - m) * s * gamma[half + i];
    if constexpr (centred) {
      first += beta[i];
      second += beta[half + i];
    }
    simd::store_two<simd::Ties::away>(y + 2 * i, {first, second});
  }
  if constexpr (centred) *mean = m;
  rstd = s;
}

// Rows [begin, end); returns the largest magnitude of an fp8 copy.
template <bool centred>
float normalise_paired_rows(const LayerNormForward& a, int64_t begin, int64_t end) {
  const int64_t C = a.C, bytes = C * static_cast<int64_t>(sizeof(bfloat16));
  const bfloat16* const beta = static_cast<const bfloat16*>(a.beta);
  bfloat16* const y = static_cast<bfloat16*>(a.y);
  FloatRow gammas, betas;
  bfloat16 scratch[max_paired_row];
  float largest = 0.0f;
  split(gammas, static_cast<const bfloat16*>(a.gamma), C);
  if (centred && beta != nullptr)
    split(betas, beta, C);
  else if (centred)
    std::fill(betas, betas + C, 0.0f);
  for (int64_t r = begin; r < end; ++r) {
    const bfloat16* const x = row_of<const bfloat16>(a.x, r, C);
    simd::prefetch_lines<0>(x, bytes);
    if (y != nullptr) simd::prefetch_lines<1>(y + r * C, bytes);
    Fp8Row<bfloat16> out(y, a.fp8, scratch, r, C);
    normalise_paired_row<centred>(out.piece(0), centred ? static_cast<float*>(a.mean) + r : nullptr,
                                  static_cast<float*>(a.rstd)[r], x, gammas, betas, C, a.epsilon);
    out.done(0, C);
    largest = std::max(largest, out.largest());
  }
  return largest;
}

// One row of dx += rstd (g - mean of g - n mean of g n), g = dy gamma, n = (x - mean) rstd.
template <bool centred>
void add_paired_input_gradient(bfloat16* dx, const bfloat16* dy, const bfloat16* x,
                               const float* gamma, float m, float s, int64_t C) {
  constexpr int64_t lanes = simd::lanes;
  const int64_t half = C / 2, whole = half / lanes * lanes;
  FloatRow g_buffer, n_buffer;
  float* const g = g_buffer;
  float* const n = n_buffer;
  const auto take = [=](int64_t i) __attribute__((always_inline)) {
    const simd::Two d = simd::load_two(dy + 2 * i), v = simd::load_two(x + 2 * i);
    const simd::Two product{d.first * gamma[i], d.second * gamma[half + i]};
    const simd::Two normal{(v.first - m) * s, (v.second - m) * s};
    g[i] = product.first;
    g[half + i] = product.second;
    n[i] = normal.first;
    n[half + i] = normal.second;
    return simd::Two{product.first + product.second,
                     product.first * normal.first + product.second * normal.second};
  };
  float part_g[lanes] = {}, part_gn[lanes] = {}, sum_g = 0.0f, sum_gn = 0.0f;
  for (int64_t i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const simd::Two sums = take(i + lane);
      part_g[lane] += sums.first;
      part_gn[lane] += sums.second;
    }
  }
#pragma omp simd reduction(+ : sum_g, sum_gn)
  for (int64_t lane = 0; lane < lanes; ++lane) {
    sum_g += part_g[lane];
    sum_gn += part_gn[lane];
  }
#pragma omp simd reduction(+ : sum_g, sum_gn)
  for (int64_t i = whole; i < half; ++i) {
    const simd::Two sums = take(i);
    sum_g += sums.first;
    sum_gn += sums.second;
  }
  const float mean_g = centred ? sum_g / static_cast<float>(C) : 0.0f;
  const float mean_gn = sum_gn / static_cast<float>(C);
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const simd::Two before = simd::load_two(dx + 2 * i);
    const float first = g[i] - mean_g - n[i] * mean_gn;
    const float second = g[half + i] - mean_g - n[half + i] * mean_gn;
    simd::store_two<simd::Ties::away>(dx + 2 * i,
                                      {before.first + s * first, before.second + s * second});
  }
}

template <bool centred>
void add_paired_input_gradients(const LayerNormBackward& a, int64_t begin, int64_t end) {
  FloatRow gammas;
  split(gammas, static_cast<const bfloat16*>(a.gamma), a.C);
  for (int64_t r = begin; r < end; ++r)
    add_paired_input_gradient<centred>(row_of<bfloat16>(a.dx, r, a.C),
                                       row_of<const bfloat16>(a.dy, r, a.C),
                                       row_of<const bfloat16>(a.x, r, a.C), gammas,
                                       centred ? static_cast<const float*>(a.mean)[r] : 0.0f,
                                       static_cast<const float*>(a.rstd)[r], a.C);
}

// dgamma += sum of dy n and, where not null, dbeta += sum of dy over rows [begin, end), for `width`
// columns from c0 on, even and at most column_block.
template <bool centred>
void add_paired_parameter_gradients(const LayerNormBackward& a, int64_t c0, int64_t width,
                                    int64_t begin, int64_t end) {
  float* const dgamma = static_cast<float*>(a.dgamma) + c0;
  float* const dbeta = a.dbeta != nullptr ? static_cast<float*>(a.dbeta) + c0 : nullptr;
  constexpr int64_t half = column_block / 2;
  float gamma_sum[column_block] = {}, beta_sum[column_block] = {};
  const auto add = [&](int64_t r, int64_t count) __attribute__((always_inline)) {
    const bfloat16* const dy = row_of<const bfloat16>(a.dy, r, a.C) + c0;
    const bfloat16* const x = row_of<const bfloat16>(a.x, r, a.C) + c0;
    const float m = centred ? static_cast<const float*>(a.mean)[r] : 0.0f;
    const float s = static_cast<const float*>(a.rstd)[r];
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const simd::Two d = simd::load_two(dy + 2 * i), v = simd::load_two(x + 2 * i);
      gamma_sum[i] += d.first * ((v.first - m) * s);
      gamma_sum[half + i] += d.second * ((v.second - m) * s);
      if constexpr (centred) {
        beta_sum[i] += d.first;
        beta_sum[half + i] += d.second;
      }
    }
  };
  for (int64_t r = begin; r < end; ++r)
    if (width == column_block)
      add(r, half);
    else
      add(r, width / 2);
  for (int64_t i = 0; i < width / 2; ++i) {
    dgamma[2 * i] += gamma_sum[i];
    dgamma[2 * i + 1] += gamma_sum[half + i];
    if (!centred || dbeta == nullptr) continue;
    dbeta[2 * i] += beta_sum[i];
    dbeta[2 * i + 1] += beta_sum[half + i];
  }
}

}  // namespace gptbench::host
