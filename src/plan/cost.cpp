#include "plan/cost.h"

namespace gptbench {

double flops_mpt_star(const ModelShape& s, int64_t num_params, int64_t B) {
  return 6.0 * static_cast<double>(num_params) * static_cast<double>(B) * static_cast<double>(s.T);
}

double flops_mpt(const ModelShape& s, int64_t num_params, int64_t B) {
  const double T = static_cast<double>(s.T);
  return flops_mpt_star(s, num_params, B) + 12.0 * static_cast<double>(B) * T * T *
                                                static_cast<double>(s.L) * static_cast<double>(s.C);
}

double flops_megatron(const ModelShape& s, int64_t B, bool full_checkpointing) {
  const double k = full_checkpointing ? 4.0 : 3.0;
  const double T = static_cast<double>(s.T), C = static_cast<double>(s.C),
               L = static_cast<double>(s.L), W = static_cast<double>(s.layer_weights());
  return k * static_cast<double>(B) * T *
         (2.0 * L * W + 4.0 * L * C * T + 1.5 * C * static_cast<double>(s.V));
}

double flops_causal(const ModelShape& s, int64_t B, double attended_share) {
  const double T = static_cast<double>(s.T), C = static_cast<double>(s.C),
               L = static_cast<double>(s.L), W = static_cast<double>(s.layer_weights());
  const double b = static_cast<double>(B);
  const double attention = s.family.causal ? 6.0 : 12.0 * attended_share;
  return b * T * (6.0 * L * W + 6.0 * C * static_cast<double>(s.V)) + attention * L * C * b * T * T;
}

bool repeats_forward(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
    case Recompute::selective:
      return false;
    case Recompute::full:
      break;
  }
  return true;
}

double hardware_factor(const MemoryConfig& memory) {
  return repeats_forward(memory.activation_checkpointing) ? 4.0 / 3.0 : 1.0;
}

}  // namespace gptbench
