#include "plan/cost.h"

namespace gptbench {

double flops_mpt(const ModelShape& s, int64_t num_params, int64_t B) {
  const double tokens = static_cast<double>(B) * static_cast<double>(s.T);
  return tokens *
         (6.0 * static_cast<double>(num_params) +
          12.0 * static_cast<double>(s.L) * static_cast<double>(s.C) * static_cast<double>(s.T));
}

double flops_megatron(const ModelShape& s, int64_t B, bool full_checkpointing) {
  const double k = full_checkpointing ? 4.0 : 3.0;
  const double T = static_cast<double>(s.T), C = static_cast<double>(s.C),
               L = static_cast<double>(s.L);
  return 24.0 * k * static_cast<double>(B) * T * L * C * C *
         (1.0 + T / (6.0 * C) + static_cast<double>(s.V) / (16.0 * L * C));
}

double flops_causal(const ModelShape& s, int64_t B) {
  const double T = static_cast<double>(s.T), C = static_cast<double>(s.C),
               L = static_cast<double>(s.L);
  const double b = static_cast<double>(B);
  return b * T * (72.0 * L * C * C + 6.0 * C * static_cast<double>(s.V)) + 6.0 * L * C * b * T * T;
}

double hardware_factor(const MemoryConfig& memory) {
  return memory.activation_checkpointing == "full" ? 4.0 / 3.0 : 1.0;
}

}  // namespace gptbench
