#include <cmath>

#include "device/host_fp8.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/norm_in_twos.h"
#include "device/simd_math.h"

namespace gptbench::host {
namespace {

// Elements of a row of 2-byte type that are kept as floats between passes.
constexpr int64_t row_buffer = 4096;
static_assert(longest_row_in_twos <= row_buffer);
// Rows that share one conversion of the parameters.
constexpr int64_t rows_at_once = 32;

// One row. X is A, or float where the row and the parameters have been converted.
template <class A, class X>
void normalise(Fp8Row<A>& out, float& mean, float& rstd, const X* x, const X* gamma, const X* beta,
               int64_t C, double epsilon) {
  // Passes over a row that stays in cache: the variance of deviations does not cancel.
  const float sum = simd::sum_of(C, [=](int64_t c) { return simd::load(x[c]); });
  const float m = sum / static_cast<float>(C);
  const float squares = simd::sum_of(C, [=](int64_t c) {
    const float deviation = simd::load(x[c]) - m;
    return deviation * deviation;
  });
  const float s = static_cast<float>(
      1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(C) + epsilon));
  constexpr int64_t piece = Fp8Row<A>::longest_piece;
  for (int64_t c0 = 0; c0 < C; c0 += piece) {
    const int64_t n = std::min(piece, C - c0);
    A* const y = out.piece(c0);
    const X *const x0 = x + c0, *const gamma0 = gamma + c0;
    if (beta != nullptr) {
      const X* const beta0 = beta + c0;
#pragma omp simd
      for (int64_t c = 0; c < n; ++c)
        simd::store(y[c],
                    (simd::load(x0[c]) - m) * s * simd::load(gamma0[c]) + simd::load(beta0[c]));
    } else {
#pragma omp simd
      for (int64_t c = 0; c < n; ++c)
        simd::store(y[c], (simd::load(x0[c]) - m) * s * simd::load(gamma0[c]));
    }
    out.done(c0, n);
  }
  mean = m;
  rstd = s;
}

template <class A>
void to_floats(float* out, const A* in, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = simd::load(in[i]);
}

// The passes over one row leave memory idle: what the next one reads and writes comes in meanwhile.
template <class A>
void prefetch_row(const A* x, const A* y, int64_t C) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(A));
  for (int64_t c = 0; c < C; c += line) {
    __builtin_prefetch(x + c, 0);
    __builtin_prefetch(y + c, 1);
  }
}

}  // namespace

template <class A>
void layernorm_forward(Queue& queue, const LayerNormForward& a) {
  if (a.residual.sum != nullptr) {  // two passes: a row is in cache for neither
    const ResidualSum& s = a.residual;
    residual_forward<A>(queue, {s.sum, s.residual, s.branch, a.R, a.C, s.dropout, s.rows});
    LayerNormForward of_sum = a;
    of_sum.x = s.sum;
    of_sum.residual = {};
    return layernorm_forward<A>(queue, of_sum);
  }
  A* const y = static_cast<A*>(a.y);
  float* const mean = static_cast<float*>(a.mean);
  float* const rstd = static_cast<float*>(a.rstd);
  const A* const x = static_cast<const A*>(a.x);
  const A* const gamma = static_cast<const A*>(a.gamma);
  const A* const beta = static_cast<const A*>(a.beta);
  const int64_t R = a.R, C = a.C;
  const double epsilon = a.epsilon;
  const Fp8Copy copy = a.fp8;
  const bool converts = sizeof(A) < sizeof(float) && C <= row_buffer;
  if constexpr (simd::in_twos<A>) {
    if (C % 2 == 0 && C <= longest_row_in_twos) {
      const auto normalise_rows = [=](int64_t block) {
        FloatRow gammas, betas;
        A scratch[longest_row_in_twos];
        float largest = 0.0f;
        split(gammas, gamma, C);
        if (beta != nullptr)
          split(betas, beta, C);
        else
          std::fill(betas, betas + C, 0.0f);
        const int64_t end = std::min(R, (block + 1) * rows_at_once);
        for (int64_t r = block * rows_at_once; r < end; ++r) {
          simd::prefetch_lines<0>(x + r * C, C * static_cast<int64_t>(sizeof(A)));
          if (y != nullptr) simd::prefetch_lines<1>(y + r * C, C * static_cast<int64_t>(sizeof(A)));
          Fp8Row<A> out(y, copy, scratch, r, C);
          normalise_in_twos<true>(out.piece(0), mean[r], rstd[r], x + r * C, gammas, betas, C,
                                  epsilon);
          out.done(0, C);
          largest = std::max(largest, out.largest());
        }
        return largest;
      };
      parallel_with_amax("gptbench::layernorm_forward", ceil_div(R, rows_at_once), copy.amax,
                         normalise_rows);
      return;
    }
  }
  const auto normalise_rows = [=](int64_t block) {
    float row[row_buffer], gammas[row_buffer], betas[row_buffer];
    A scratch[Fp8Row<A>::longest_piece];
    float largest = 0.0f;
    if (converts) {
      to_floats(gammas, gamma, C);
      if (beta != nullptr) to_floats(betas, beta, C);
    }
    const int64_t end = std::min(R, (block + 1) * rows_at_once);
    for (int64_t r = block * rows_at_once; r < end; ++r) {
      if (r + 1 < end && y != nullptr) prefetch_row(x + (r + 1) * C, y + (r + 1) * C, C);
      Fp8Row<A> out(y, copy, scratch, r, C);
      if (converts) {
        to_floats(row, x + r * C, C);
        normalise<A, float>(out, mean[r], rstd[r], row, gammas, beta != nullptr ? betas : nullptr,
                            C, epsilon);
      } else {
        normalise<A, A>(out, mean[r], rstd[r], x + r * C, gamma, beta, C, epsilon);
      }
      largest = std::max(largest, out.largest());
    }
    return largest;
  };
  parallel_with_amax("gptbench::layernorm_forward", ceil_div(R, rows_at_once), copy.amax,
                     normalise_rows);
}

template <class A>
void layernorm_backward(Queue&, const LayerNormBackward& a) {
  A* const dx = static_cast<A*>(a.dx);
  float* const dgamma = static_cast<float*>(a.dgamma);
  float* const dbeta = static_cast<float*>(a.dbeta);
  const A* const dy = static_cast<const A*>(a.dy);
  const A* const x = static_cast<const A*>(a.x);
  const A* const gamma = static_cast<const A*>(a.gamma);
  const float* const mean = static_cast<const float*>(a.mean);
  const float* const rstd = static_cast<const float*>(a.rstd);
  const int64_t C = a.C;

  const auto input_gradient = [=](int64_t r) {
    const A* const dy_row = dy + r * C;
    const A* const x_row = x + r * C;
    A* const dx_row = dx + r * C;
    const float m = mean[r];
    const float s = rstd[r];
    const float sum_g =
        simd::sum_of(C, [=](int64_t c) { return simd::load(dy_row[c]) * simd::load(gamma[c]); });
    const float sum_gn = simd::sum_of(C, [=](int64_t c) {
      return simd::load(dy_row[c]) * simd::load(gamma[c]) * ((simd::load(x_row[c]) - m) * s);
    });
    const float mean_g = sum_g / static_cast<float>(C);
    const float mean_gn = sum_gn / static_cast<float>(C);
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const float g = simd::load(dy_row[c]) * simd::load(gamma[c]);
      const float n = (simd::load(x_row[c]) - m) * s;
      simd::store(dx_row[c], simd::load(dx_row[c]) + s * (g - mean_g - n * mean_gn));
    }
  };

  // A batch of row blocks at a time, one a thread: first the rows, then, while they are in cache,
  // the columns.
  const int64_t batch = row_block * num_threads();
  [[maybe_unused]] const bool twos = C % 2 == 0 && C <= longest_row_in_twos;
  for (int64_t first = 0; first < a.R; first += batch) {
    const int64_t last = std::min(a.R, first + batch);
    parallel("gptbench::layernorm_backward_input", ceil_div(last - first, row_block),
             [=](int64_t block) {
               const int64_t begin = first + block * row_block;
               const int64_t end = std::min(last, begin + row_block);
               if constexpr (simd::in_twos<A>) {
                 if (twos) {
                   FloatRow gammas;
                   split(gammas, gamma, C);
                   for (int64_t r = begin; r < end; ++r)
                     add_input_gradient_in_twos<true>(dx + r * C, dy + r * C, x + r * C, gammas,
                                                      mean[r], rstd[r], C);
                   return;
                 }
               }
               for (int64_t r = begin; r < end; ++r) input_gradient(r);
             });
    parallel("gptbench::layernorm_backward_parameters", ceil_div(C, column_block),
             [=](int64_t block) {
               const int64_t c0 = block * column_block;
               const int64_t width = std::min(column_block, C - c0);
               for (int64_t begin = first; begin < last; begin += row_block) {
                 const int64_t end = std::min(last, begin + row_block);
                 if constexpr (simd::in_twos<A>) {
                   if (twos) {
                     add_parameter_gradients_in_twos<true>(
                         dgamma + c0, dbeta != nullptr ? dbeta + c0 : nullptr, dy + c0, x + c0,
                         mean, rstd, begin, end, C, width);
                     continue;
                   }
                 }
                 float gamma_sum[column_block] = {};
                 float beta_sum[column_block] = {};
                 for (int64_t r = begin; r < end; ++r) {
                   const A* const dy_row = dy + r * C + c0;
                   const A* const x_row = x + r * C + c0;
                   const float m = mean[r];
                   const float s = rstd[r];
#pragma omp simd
                   for (int64_t c = 0; c < width; ++c) {
                     const float d = simd::load(dy_row[c]);
                     gamma_sum[c] += d * ((simd::load(x_row[c]) - m) * s);
                     beta_sum[c] += d;
                   }
                 }
#pragma omp simd
                 for (int64_t c = 0; c < width; ++c) {
                   dgamma[c0 + c] += gamma_sum[c];
                   if (dbeta != nullptr) dbeta[c0 + c] += beta_sum[c];
                 }
               }
             });
  }
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(layernorm_forward, LayerNormForward);
GPTBENCH_HOST_KERNEL(layernorm_backward, LayerNormBackward);
}  // namespace gptbench
