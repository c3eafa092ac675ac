// LayerNorm and RMSNorm. RMSNorm is LayerNorm without mean, beta and dbeta: `centred` is false and
// these are null. Rows of bf16 are handled in pairs of elements where they can be (norm_pairs.h).
#include <cmath>

#include "device/host/fp8.h"
#include "device/host/kernels.h"
#include "device/host/norm_pairs.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {
namespace {

// Elements of a row of 2-byte type that are kept as floats between passes.
constexpr int64_t row_buffer = 4096;
// Rows that share one conversion of the parameters.
constexpr int64_t rows_at_once = 32;

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

// One row; `mean` is assigned where `centred`. X is A, or float where the row and the parameters
// have been converted.
template <bool centred, class A, class X>
void normalise(Fp8Row<A>& out, float* mean, float& rstd, const X* x, const X* gamma, const X* beta,
               int64_t C, double epsilon) {
  // Passes over a row that stays in cache: the variance of deviations does not cancel.
  float m = 0.0f;
  if constexpr (centred) {
    m = simd::sum_of(C, [=](int64_t c) { return simd::load(x[c]); }) / static_cast<float>(C);
    *mean = m;
  }
  const float squares = simd::sum_of(C, [=](int64_t c) {
    const float deviation = simd::load(x[c]) - m;
    return deviation * deviation;
  });
  const float s = static_cast<float>(
      1.0 / std::sqrt(static_cast<double>(squares) / static_cast<double>(C) + epsilon));
  constexpr int64_t piece = Fp8Row<A>::max_piece;
  for (int64_t c0 = 0; c0 < C; c0 += piece) {
    const int64_t n = std::min(piece, C - c0);
    A* const y = out.piece(c0);
    const X *const x0 = x + c0, *const gamma0 = gamma + c0;
    if (centred && beta != nullptr) {
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
  rstd = s;
}

// Rows [begin, end); returns the largest magnitude of an fp8 copy.
template <bool centred, class A>
float normalise_rows(const LayerNormForward& a, int64_t begin, int64_t end) {
  if constexpr (simd::in_twos<A>)
    if (is_paired_row(a.C)) return normalise_paired_rows<centred>(a, begin, end);
  const A* const gamma = static_cast<const A*>(a.gamma);
  const A* const beta = static_cast<const A*>(a.beta);
  const int64_t C = a.C;
  // RMSNorm reads a row once less, which does not pay for a conversion.
  const bool converts = centred && sizeof(A) < sizeof(float) && C <= row_buffer;
  float row[row_buffer], gammas[row_buffer], betas[row_buffer];
  A scratch[Fp8Row<A>::max_piece];
  float largest = 0.0f;
  if (converts) {
    to_floats(gammas, gamma, C);
    if (beta != nullptr) to_floats(betas, beta, C);
  }
  for (int64_t r = begin; r < end; ++r) {
    const A* const x = row_of<const A>(a.x, r, C);
    A* const y = static_cast<A*>(a.y);
    float* const mean = centred ? static_cast<float*>(a.mean) + r : nullptr;
    float& rstd = static_cast<float*>(a.rstd)[r];
    if (r + 1 < end && y != nullptr) prefetch_row(x + C, y + (r + 1) * C, C);
    Fp8Row<A> out(y, a.fp8, scratch, r, C);
    if (converts) {
      to_floats(row, x, C);
      normalise<centred, A, float>(out, mean, rstd, row, gammas, beta != nullptr ? betas : nullptr,
                                   C, a.epsilon);
    } else {
      normalise<centred, A, A>(out, mean, rstd, x, gamma, beta, C, a.epsilon);
    }
    largest = std::max(largest, out.largest());
  }
  return largest;
}

template <bool centred, class A>
void norm_forward(const char* name, Queue& queue, LayerNormForward a) {
  if (a.residual.sum != nullptr) {  // two passes: a row is in cache for neither
    residual_forward<A>(queue, residual_of(a));
    a.x = a.residual.sum;
  }
  parallel_with_amax(name, ceil_div(a.R, rows_at_once), a.fp8.amax, [=](int64_t block) {
    const int64_t begin = block * rows_at_once;
    return normalise_rows<centred, A>(a, begin, std::min(a.R, begin + rows_at_once));
  });
}

// One row of dx += rstd (g - mean of g - n mean of g n), g = dy gamma, n = (x - mean) rstd.
template <bool centred, class A>
void add_input_gradient(A* dx, const A* dy, const A* x, const A* gamma, float mean, float s,
                        int64_t C) {
  const float m = centred ? mean : 0.0f;
  float mean_g = 0.0f;
  if constexpr (centred)
    mean_g = simd::sum_of(C, [=](int64_t c) { return simd::load(dy[c]) * simd::load(gamma[c]); }) /
             static_cast<float>(C);
  const float sum_gn = simd::sum_of(C, [=](int64_t c) {
    return simd::load(dy[c]) * simd::load(gamma[c]) * ((simd::load(x[c]) - m) * s);
  });
  const float mean_gn = sum_gn / static_cast<float>(C);
#pragma omp simd
  for (int64_t c = 0; c < C; ++c) {
    const float g = simd::load(dy[c]) * simd::load(gamma[c]);
    const float n = (simd::load(x[c]) - m) * s;
    simd::store(dx[c], simd::load(dx[c]) + s * (g - mean_g - n * mean_gn));
  }
}

template <bool centred, class A>
void add_input_gradients(const LayerNormBackward& a, int64_t begin, int64_t end) {
  if constexpr (simd::in_twos<A>)
    if (is_paired_row(a.C)) return add_paired_input_gradients<centred>(a, begin, end);
  for (int64_t r = begin; r < end; ++r)
    add_input_gradient<centred>(row_of<A>(a.dx, r, a.C), row_of<const A>(a.dy, r, a.C),
                                row_of<const A>(a.x, r, a.C), static_cast<const A*>(a.gamma),
                                centred ? static_cast<const float*>(a.mean)[r] : 0.0f,
                                static_cast<const float*>(a.rstd)[r], a.C);
}

// dgamma += sum of dy n and, where not null, dbeta += sum of dy over rows [begin, end), for `width`
// columns from c0 on, at most column_block.
template <bool centred, class A>
void add_parameter_gradients(const LayerNormBackward& a, int64_t c0, int64_t width, int64_t begin,
                             int64_t end) {
  if constexpr (simd::in_twos<A>)
    if (is_paired_row(a.C))
      return add_paired_parameter_gradients<centred>(a, c0, width, begin, end);
  float* const dgamma = static_cast<float*>(a.dgamma) + c0;
  float* const dbeta = a.dbeta != nullptr ? static_cast<float*>(a.dbeta) + c0 : nullptr;
  float gamma_sum[column_block] = {}, beta_sum[column_block] = {};
  for (int64_t r = begin; r < end; ++r) {
    const A* const dy = row_of<const A>(a.dy, r, a.C) + c0;
    const A* const x = row_of<const A>(a.x, r, a.C) + c0;
    const float m = centred ? static_cast<const float*>(a.mean)[r] : 0.0f;
    const float s = static_cast<const float*>(a.rstd)[r];
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      const float d = simd::load(dy[c]);
      gamma_sum[c] += d * ((simd::load(x[c]) - m) * s);
      if (centred) beta_sum[c] += d;
    }
  }
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) {
    dgamma[c] += gamma_sum[c];
    if (centred && dbeta != nullptr) dbeta[c] += beta_sum[c];
  }
}

// A batch of row blocks at a time, one per thread: first the rows, then, while they are in cache,
// the columns.
template <bool centred, class A>
void norm_backward(const char* input_name, const char* parameters_name,
                   const LayerNormBackward& a) {
  const int64_t batch = row_block * num_threads();
  for (int64_t first = 0; first < a.R; first += batch) {
    const int64_t last = std::min(a.R, first + batch);
    parallel(input_name, ceil_div(last - first, row_block), [=](int64_t block) {
      const int64_t begin = first + block * row_block;
      add_input_gradients<centred, A>(a, begin, std::min(last, begin + row_block));
    });
    parallel(parameters_name, ceil_div(a.C, column_block), [=](int64_t block) {
      const int64_t c0 = block * column_block, width = std::min(column_block, a.C - c0);
      for (int64_t begin = first; begin < last; begin += row_block)
        add_parameter_gradients<centred, A>(a, c0, width, begin, std::min(last, begin + row_block));
    });
  }
}

}  // namespace

template <class A>
void layernorm_forward(Queue& queue, const LayerNormForward& a) {
  norm_forward<true, A>("gptbench::layernorm_forward", queue, a);
}

template <class A>
void layernorm_backward(Queue& queue, const LayerNormBackward& a) {
  norm_backward<true, A>("gptbench::layernorm_backward_input",
                         "gptbench::layernorm_backward_parameters", a);
  if (a.column_sums != nullptr) bias_backward<A>(queue, {a.column_sums, a.dx, a.R, a.C});
}

template <class A>
void rmsnorm_forward(Queue& queue, const RmsNormForward& a) {
  norm_forward<false, A>("gptbench::rmsnorm_forward", queue, as_layernorm(a));
}

template <class A>
void rmsnorm_backward(Queue&, const RmsNormBackward& a) {
  norm_backward<false, A>("gptbench::rmsnorm_backward_input",
                          "gptbench::rmsnorm_backward_parameters", as_layernorm(a));
}

GPTBENCH_NORM_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
