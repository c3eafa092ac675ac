#include <cmath>

#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void squared_norm(Queue&, const SquaredNorm& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double g = load_as<A, S>(a.type, a.g, i);
    a.sum[0] += g * g;
  }
}

template <class A, class S>
void loss_scale(Queue&, const LossScale& a) {
  double &scale = a.state[0], &good_steps = a.state[1], &borne = a.state[2];
  const bool finite = std::isfinite(a.norm2[0]);
  a.used[0] = scale;
  a.skip[0] = finite ? 0.0 : 1.0;
  if (finite) {
    a.norm2[0] /= scale * scale;
    good_steps += 1.0;
    if (a.window > 0 && good_steps >= static_cast<double>(a.window)) {
      scale *= a.growth;
      good_steps = 0.0;
      borne = static_cast<double>(a.hysteresis);
    }
  } else {
    good_steps = 0.0;
    borne -= 1.0;
    if (borne <= 0.0) scale *= a.backoff;
  }
  a.next[0] = scale;
}

template <class A, class S>
void clip_factor(Queue&, const ClipFactor& a) {
  const double norm = std::sqrt(a.norm2[0]);
  a.factor[0] = a.clip == 0.0 || norm <= a.clip ? 1.0 : a.clip / norm;
  if (!std::isfinite(norm)) a.factor[0] = std::nan("");
  if (a.loss_scale != nullptr) a.factor[0] /= a.loss_scale[0];
}

template <class A, class S>
void adamw(Queue&, const AdamW& a) {
  const double correction1 = 1.0 - std::pow(a.beta1, static_cast<double>(a.t));
  const double correction2 = 1.0 - std::pow(a.beta2, static_cast<double>(a.t));
  const bool skip = (a.skip != nullptr && a.skip[0] != 0.0) || std::isnan(a.factor[0]);
  for (int64_t i = 0; i < a.n; ++i) {
    if (a.working != nullptr && skip) store<A>(a.working, i, load_as<A, S>(a.p_type, a.p, i));
    if (skip) continue;
    const double g = a.factor[0] * load_as<A, S>(a.g_type, a.g, i);
    const double m = a.beta1 * load_as<A, S>(a.moment_type, a.m, i) + (1.0 - a.beta1) * g;
    const double v = a.beta2 * load_as<A, S>(a.moment_type, a.v, i) + (1.0 - a.beta2) * g * g;
    const double p = load_as<A, S>(a.p_type, a.p, i);
    const double step = m / correction1 / (std::sqrt(v / correction2) + a.epsilon);
    store_as<A, S>(a.moment_type, a.m, i, m);
    store_as<A, S>(a.moment_type, a.v, i, v);
    store_as<A, S>(a.p_type, a.p, i, p - a.lr * (step + a.weight_decay * p));
    if (a.working != nullptr) store<A>(a.working, i, load_as<A, S>(a.p_type, a.p, i));
  }
}

template <class A, class S>
void accumulate(Queue&, const Accumulate& a) {
  for (int64_t i = 0; i < a.n; ++i) store<S>(a.y, i, load<S>(a.y, i) + load<S>(a.x, i));
}

template <class A, class S>
void sum_scalars(Queue&, const SumScalars& a) {
  double sum = 0.0;
  for (int64_t i = 0; i < a.n; ++i) sum += a.x[i];
  a.out[0] = sum;
}

GPTBENCH_OPTIMIZER_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
