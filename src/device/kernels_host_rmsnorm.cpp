#include <cmath>

#include "device/host_fp8.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/norm_in_twos.h"
#include "device/simd_math.h"

namespace gptbench::host {

template <class A>
void rmsnorm_forward(Queue& queue, const RmsNormForward& a) {
  if (a.residual.sum != nullptr) {  // two passes: a row is in cache for neither
    const ResidualSum& s = a.residual;
    residual_forward<A>(queue, {s.sum, s.residual, s.branch, a.R, a.C, s.dropout, s.rows});
    RmsNormForward of_sum = a;
    of_sum.x = s.sum;
    of_sum.residual = {};
    return rmsnorm_forward<A>(queue, of_sum);
  }
  A* const y = static_cast<A*>(a.y);
  float* const rstd = static_cast<float*>(a.rstd);
  const A* const x = static_cast<const A*>(a.x);
  const A* const gamma = static_cast<const A*>(a.gamma);
  const int64_t C = a.C;
  const double epsilon = a.epsilon;
  const Fp8Copy copy = a.fp8;
  if constexpr (simd::in_twos<A>) {
    if (C % 2 == 0 && C <= longest_row_in_twos) {
      const int64_t R = a.R;
      const auto normalise_rows = [=](int64_t block) {
        FloatRow gammas;
        A scratch[longest_row_in_twos];
        float largest = 0.0f;
        split(gammas, gamma, C);
        const int64_t end = std::min(R, (block + 1) * row_block);
        for (int64_t r = block * row_block; r < end; ++r) {
          float mean;
          simd::prefetch_lines<0>(x + r * C, C * static_cast<int64_t>(sizeof(A)));
          if (y != nullptr) simd::prefetch_lines<1>(y + r * C, C * static_cast<int64_t>(sizeof(A)));
          Fp8Row<A> out(y, copy, scratch, r, C);
          normalise_in_twos<false>(out.piece(0), mean, rstd[r], x + r * C, gammas, nullptr, C,
                                   epsilon);
          out.done(0, C);
          largest = std::max(largest, out.largest());
        }
        return largest;
      };
      parallel_with_amax("gptbench::rmsnorm_forward", ceil_div(R, row_block), copy.amax,
                         normalise_rows);
      return;
    }
  }
  const auto normalise_row = [=](int64_t r) {
    const A* const x_row = x + r * C;
    A scratch[Fp8Row<A>::longest_piece];
    Fp8Row<A> out(y, copy, scratch, r, C);
    const float squares = simd::sum_of(C, [=](int64_t c) {
      const float value = simd::load(x_row[c]);
      return value * value;
    });
    const float s = static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(C) + epsilon));
    for (int64_t c0 = 0; c0 < C; c0 += Fp8Row<A>::longest_piece) {
      const int64_t n = std::min(Fp8Row<A>::longest_piece, C - c0);
      A* const y_piece = out.piece(c0);
      const A *const x_piece = x_row + c0, *const gammas = gamma + c0;
#pragma omp simd
      for (int64_t c = 0; c < n; ++c)
        simd::store(y_piece[c], simd::load(x_piece[c]) * s * simd::load(gammas[c]));
      out.done(c0, n);
    }
    rstd[r] = s;
    return out.largest();
  };
  parallel_with_amax("gptbench::rmsnorm_forward", a.R, copy.amax, normalise_row);
}

template <class A>
void rmsnorm_backward(Queue&, const RmsNormBackward& a) {
  A* const dx = static_cast<A*>(a.dx);
  float* const dgamma = static_cast<float*>(a.dgamma);
  const A* const dy = static_cast<const A*>(a.dy);
  const A* const x = static_cast<const A*>(a.x);
  const A* const gamma = static_cast<const A*>(a.gamma);
  const float* const rstd = static_cast<const float*>(a.rstd);
  const int64_t C = a.C;

  const auto input_gradient = [=](int64_t r) {
    const A* const dy_row = dy + r * C;
    const A* const x_row = x + r * C;
    A* const dx_row = dx + r * C;
    const float s = rstd[r];
    const float sum_gn = simd::sum_of(C, [=](int64_t c) {
      return simd::load(dy_row[c]) * simd::load(gamma[c]) * (simd::load(x_row[c]) * s);
    });
    const float mean_gn = sum_gn / static_cast<float>(C);
#pragma omp simd
    for (int64_t c = 0; c < C; ++c) {
      const float g = simd::load(dy_row[c]) * simd::load(gamma[c]);
      const float n = simd::load(x_row[c]) * s;
      simd::store(dx_row[c], simd::load(dx_row[c]) + s * (g - n * mean_gn));
    }
  };

  // A batch of row blocks at a time, one a thread: first the rows, then, while they are in cache,
  // the columns.
  const int64_t batch = row_block * num_threads();
  [[maybe_unused]] const bool twos = C % 2 == 0 && C <= longest_row_in_twos;
  for (int64_t first = 0; first < a.R; first += batch) {
    const int64_t last = std::min(a.R, first + batch);
    parallel("gptbench::rmsnorm_backward_input", ceil_div(last - first, row_block),
             [=](int64_t block) {
               const int64_t begin = first + block * row_block;
               const int64_t end = std::min(last, begin + row_block);
               if constexpr (simd::in_twos<A>) {
                 if (twos) {
                   FloatRow gammas;
                   split(gammas, gamma, C);
                   for (int64_t r = begin; r < end; ++r)
                     add_input_gradient_in_twos<false>(dx + r * C, dy + r * C, x + r * C, gammas,
                                                       0.0f, rstd[r], C);
                   return;
                 }
               }
               for (int64_t r = begin; r < end; ++r) input_gradient(r);
             });
    parallel("gptbench::rmsnorm_backward_parameters", ceil_div(C, column_block),
             [=](int64_t block) {
               const int64_t c0 = block * column_block;
               const int64_t width = std::min(column_block, C - c0);
               for (int64_t begin = first; begin < last; begin += row_block) {
                 const int64_t end = std::min(last, begin + row_block);
                 if constexpr (simd::in_twos<A>) {
                   if (twos) {
                     add_parameter_gradients_in_twos<false>(dgamma + c0, nullptr, dy + c0, x + c0,
                                                            nullptr, rstd, begin, end, C, width);
                     continue;
                   }
                 }
                 float sum[column_block] = {};
                 for (int64_t r = begin; r < end; ++r) {
                   const A* const dy_row = dy + r * C + c0;
                   const A* const x_row = x + r * C + c0;
                   const float s = rstd[r];
#pragma omp simd
                   for (int64_t c = 0; c < width; ++c)
                     sum[c] += simd::load(dy_row[c]) * (simd::load(x_row[c]) * s);
                 }
#pragma omp simd
                 for (int64_t c = 0; c < width; ++c) dgamma[c0 + c] += sum[c];
               }
             });
  }
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(rmsnorm_forward, RmsNormForward);
GPTBENCH_HOST_KERNEL(rmsnorm_backward, RmsNormBackward);
}  // namespace gptbench
