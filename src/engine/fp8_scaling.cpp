#include "engine/fp8_scaling.h"

#include "base/fp8.h"

namespace gptbench {

std::vector<Fp8Scaling> read_fp8_scaling(Resources& resources) {
  const Fp8Plan& fp8 = resources.plan.fp8;
  const size_t count = fp8.tensors.size();
  const size_t length = static_cast<size_t>(resources.plan.config.precision.fp8_amax_history);
  if (count == 0) return {};
  std::vector<float> scales(count), history(length * count);
  std::vector<int32_t> positions(count);
  resources.fetch({fp8.scale}, scales);
  resources.fetch({fp8.history}, history);
  resources.fetch({fp8.position}, positions);
  std::vector<Fp8Scaling> factors;
  for (size_t i = 0; i < count; ++i) {
    Fp8Scaling factor{fp8.tensors[i].name, scales[i], {}};
    // The oldest row is the one that the next step replaces.
    for (size_t step = 0; step < length; ++step) {
      const size_t row = (static_cast<size_t>(positions[i]) + step) % length;
      factor.amax.push_back(history[row * count + i]);
    }
    factors.push_back(std::move(factor));
  }
  return factors;
}

void put_fp8_scales(Resources& resources, const std::vector<float>& scales) {
  const Fp8Plan& fp8 = resources.plan.fp8;
  std::vector<float> inverse(scales.size() * fp8_inverse_stride);
  for (size_t i = 0; i < scales.size(); ++i) inverse[i * fp8_inverse_stride] = 1.0f / scales[i];
  resources.put({fp8.scale}, scales);
  resources.put({fp8.inverse}, inverse);
}

void write_fp8_scaling(Resources& resources, const std::vector<Fp8Scaling>& factors) {
  const Fp8Plan& fp8 = resources.plan.fp8;
  const size_t count = factors.size();
  const size_t length = static_cast<size_t>(resources.plan.config.precision.fp8_amax_history);
  if (count == 0) return;
  std::vector<float> scales, history(length * count);
  for (size_t i = 0; i < count; ++i) {
    scales.push_back(factors[i].scale);
    for (size_t step = 0; step < length; ++step) history[step * count + i] = factors[i].amax[step];
  }
  const std::vector<int32_t> positions(count, 0);
  put_fp8_scales(resources, scales);
  resources.put({fp8.history}, history);
  resources.put({fp8.position}, positions);
}

}  // namespace gptbench
