#include <cmath>

#include "device/kernels_ref.h"

namespace gptbench::ref {

template <class A, class S>
void layernorm_forward(Queue&, const LayerNormForward& a) {
  const double count = static_cast<double>(a.C);
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
      store<A>(a.y, r * a.C + c, n * load<A>(a.gamma, c) + load<A>(a.beta, c));
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
    double dbeta = load<S>(a.dbeta, c);
    for (int64_t r = 0; r < a.R; ++r) {
      dgamma += load<A>(a.dy, r * a.C + c) * normal(r, c);
      dbeta += load<A>(a.dy, r * a.C + c);
    }
    store<S>(a.dgamma, c, dgamma);
    store<S>(a.dbeta, c, dbeta);
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

}  // namespace gptbench::ref

namespace gptbench {
GPTBENCH_REF_KERNEL(layernorm_forward, LayerNormForward);
GPTBENCH_REF_KERNEL(layernorm_backward, LayerNormBackward);
}  // namespace gptbench
