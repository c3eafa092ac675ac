#include <cmath>

#include "device/ref/kernels.h"

namespace gptbench::ref {
namespace {

// LayerNorm where `centred`, else RMSNorm (as_layernorm).
template <bool centred, class A, class S>
void norm_forward(Queue& queue, LayerNormForward a) {
  if (a.residual.sum != nullptr) {
    residual_forward<A, S>(queue, residual_of(a));
    a.x = a.residual.sum;
  }
  const double count = static_cast<double>(a.C);
  const Fp8Elements<A, S> y(a.y, a.fp8, a.R, a.C);
  for (int64_t r = 0; r < a.R; ++r) {
    double mean = 0.0;
    for (int64_t c = 0; centred && c < a.C; ++c) mean += load<A>(a.x, r * a.C + c);
    mean /= count;
    double variance = 0.0;
    for (int64_t c = 0; c < a.C; ++c) {
      const double deviation = load<A>(a.x, r * a.C + c) - mean;
      variance += deviation * deviation;
    }
    variance /= count;
    const double rstd = 1.0 / std::sqrt(variance + a.epsilon);
    for (int64_t c = 0; c < a.C; ++c) {
      const double n = (load<A>(a.x, r * a.C + c) - mean) * rstd;
      y.put(r * a.C + c, n * load<A>(a.gamma, c) + (a.beta != nullptr ? load<A>(a.beta, c) : 0.0));
    }
    if (centred) store<S>(a.mean, r, mean);
    store<S>(a.rstd, r, rstd);
  }
}

template <bool centred, class A, class S>
void norm_backward(const LayerNormBackward& a) {
  const double count = static_cast<double>(a.C);
  const auto normal = [&a](int64_t r, int64_t c) {
    return (load<A>(a.x, r * a.C + c) - (centred ? load<S>(a.mean, r) : 0.0)) * load<S>(a.rstd, r);
  };
  for (int64_t c = 0; c < a.C; ++c) {
    double dgamma = load<S>(a.dgamma, c);
    double dbeta = a.dbeta != nullptr ? load<S>(a.dbeta, c) : 0.0;
    for (int64_t r = 0; r < a.R; ++r) {
      dgamma += load<A>(a.dy, r * a.C + c) * normal(r, c);
      dbeta += load<A>(a.dy, r * a.C + c);
    }
    store<S>(a.dgamma, c, dgamma);
    if (a.dbeta != nullptr) store<S>(a.dbeta, c, dbeta);
  }
  for (int64_t r = 0; r < a.R; ++r) {
    double mean_g = 0.0;
    double mean_gn = 0.0;
    for (int64_t c = 0; c < a.C; ++c) {
      const double g = load<A>(a.dy, r * a.C + c) * load<A>(a.gamma, c);
      if (centred) mean_g += g;
      mean_gn += g * normal(r, c);
    }
    mean_g /= count;
    mean_gn /= count;
    for (int64_t c = 0; c < a.C; ++c) {
      const double g = load<A>(a.dy, r * a.C + c) * load<A>(a.gamma, c);
      const double dx = load<S>(a.rstd, r) * (g - mean_g - normal(r, c) * mean_gn);
      store<A>(a.dx, r * a.C + c, load<A>(a.dx, r * a.C + c) + dx);
    }
  }
}

}  // namespace

template <class A, class S>
void layernorm_forward(Queue& queue, const LayerNormForward& a) {
  norm_forward<true, A, S>(queue, a);
}

template <class A, class S>
void layernorm_backward(Queue& queue, const LayerNormBackward& a) {
  norm_backward<true, A, S>(a);
  if (a.column_sums != nullptr) bias_backward<A, S>(queue, {a.column_sums, a.dx, a.R, a.C});
}

template <class A, class S>
void rmsnorm_forward(Queue& queue, const RmsNormForward& a) {
  norm_forward<false, A, S>(queue, as_layernorm(a));
}

template <class A, class S>
void rmsnorm_backward(Queue&, const RmsNormBackward& a) {
  norm_backward<false, A, S>(as_layernorm(a));
}

GPTBENCH_NORM_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
