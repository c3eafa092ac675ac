#include <algorithm>

#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void fp8_quantize(Queue&, const Fp8Quantize& a) {
  const Fp8Copy copy = copy_of(a);
  const Fp8Elements<A, S> elements(nullptr, copy, a.R, a.C);
  for (int64_t i = 0; i < a.R * a.C; ++i) elements.put(i, load<A>(a.x, i));
}

template <class A, class S>
void fp8_transpose(Queue&, const Fp8Transpose& a) {
  const uint8_t* const x = static_cast<const uint8_t*>(a.x);
  uint8_t* const y = static_cast<uint8_t*>(a.y);
  const int64_t rows = padded_rows(a.R);
  for (int64_t c = 0; c < a.C; ++c)
    for (int64_t r = 0; r < rows; ++r)
      y[c * rows + r] = r < a.R ? x[r * a.C + c] : static_cast<uint8_t>(0);
}

template <class A, class S>
void fp8_update_scales(Queue&, const Fp8UpdateScales& a) {
  for (int64_t i = 0; i < a.count; ++i) {
    a.history[a.position[i] * a.count + i] = a.amax[i];
    a.position[i] = static_cast<int32_t>((a.position[i] + 1) % a.length);
    a.amax[i] = 0.0f;
    float largest = 0.0f;
    for (int64_t step = 0; step < a.length; ++step)
      largest = std::max(largest, a.history[step * a.count + i]);
    const DType type = i < a.e4m3 ? DType::fp8_e4m3 : DType::fp8_e5m2;
    a.scale[i] = fp8_scale(largest, fp8_format(type), a.margin, a.scale[i]);
    a.inverse[fp8_inverse_stride * i] = 1.0f / a.scale[i];
  }
}

GPTBENCH_FP8_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
