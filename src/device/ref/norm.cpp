#include <cmath>

#include "device/ref/kernels.h"

namespace gptbench::ref {

namespace {

template <class A, class S>
const void* form_residual_sum(Queue& queue, const ResidualSum& s, int64_t R, int64_t C) {
  residual_forward<A, S>(queue, {s.sum, s.residual, s.branch, R, C, s.dropout, s.rows});
  return s.sum;
}

}  // namespace

template <class A, class S>
void layernorm_forward(Queue& queue, const LayerNormForward& arguments) {
  LayerNormForward a = arguments;
  if (a.residual.sum != nullptr) a.x = form_residual_sum<A, S>(queue, a.residual, a.R, a.C);
  const double count = static_cast<double>(a.C);
  const Fp8Elements<A, S> y(a.y, a.fp8, a.R, a.C);
  for (int64_t r = 0; r < a.R; ++r) {
    double mean = 0.0;
    for (int64_t c = 0; c < a.C; ++c) mean += load<A>(a.x, r * a.C + c);
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
    store<S>(a.mean, r, mean);
    store<S>(a.rstd, r, rstd);
  }
}

template <class A, class S>
void layernorm_backward(Queue&, const LayerNormBackward& a) {
  const double count = static_cast<double>(a.C);
  const auto normal = [&a](int64_t r, int64_t c) {
    return (load<A>(a.x, r * a.C + c) - load<S>(a.mean, r)) * load<S>(a.rstd, r);
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
      mean_g += g;
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

template <class A, class S>
void rmsnorm_forward(Queue& queue, const RmsNormForward& arguments) {
  RmsNormForward a = arguments;
  if (a.residual.sum != nullptr) a.x = form_residual_sum<A, S>(queue, a.residual, a.R, a.C);
  const Fp8Elements<A, S> y(a.y, a.fp8, a.R, a.C);
  for (int64_t r = 0; r < a.R; ++r) {
    double square = 0.0;
    for (int64_t c = 0; c < a.C; ++c) {
      const double x = load<A>(a.x, r * a.C + c);
      square += x * x;
    }
    const double rstd = 1.0 / std::sqrt(square / static_cast<double>(a.C) + a.epsilon);
    for (int64_t c = 0; c < a.C; ++c)
      y.put(r * a.C + c, load<A>(a.x, r * a.C + c) * rstd * load<A>(a.gamma, c));
    store<S>(a.rstd, r, rstd);
  }
}

template <class A, class S>
void rmsnorm_backward(Queue&, const RmsNormBackward& a) {
  const auto normal = [&a](int64_t r, int64_t c) {
    return load<A>(a.x, r * a.C + c) * load<S>(a.rstd, r);
  };
  for (int64_t c = 0; c < a.C; ++c) {
    double dgamma = load<S>(a.dgamma, c);
    for (int64_t r = 0; r < a.R; ++r) dgamma += load<A>(a.dy, r * a.C + c) * normal(r, c);
    store<S>(a.dgamma, c, dgamma);
  }
  for (int64_t r = 0; r < a.R; ++r) {
    double mean_gn = 0.0;
    for (int64_t c = 0; c < a.C; ++c)
      mean_gn += load<A>(a.dy, r * a.C + c) * load<A>(a.gamma, c) * normal(r, c);
    mean_gn /= static_cast<double>(a.C);
    for (int64_t c = 0; c < a.C; ++c) {
      const double g = load<A>(a.dy, r * a.C + c) * load<A>(a.gamma, c);
      const double dx = load<S>(a.rstd, r) * (g - normal(r, c) * mean_gn);
      store<A>(a.dx, r * a.C + c, load<A>(a.dx, r * a.C + c) + dx);
    }
  }
}

GPTBENCH_NORM_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
