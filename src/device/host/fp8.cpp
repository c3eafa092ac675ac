#include "device/host/fp8.h"
#include "device/host/kernels.h"
#include "device/ref/kernels.h"

namespace gptbench::host {
namespace {

constexpr int64_t tile = 64;

}  // namespace

template <class A>
void fp8_quantize(Queue& queue, const Fp8Quantize& a) {
  const A* const x = static_cast<const A*>(a.x);
  const float scale = a.scale[0];
  const Fp8Format format = fp8_format(a.type);
  const int64_t R = a.R, C = a.C;
  if (a.y != nullptr) {
    uint8_t* const y = static_cast<uint8_t*>(a.y);
    const int64_t n = R * C;
    parallel_with_amax("gptbench::fp8_quantize", ceil_div(n, block_elements), a.amax,
                       [=](int64_t block) {
                         const int64_t begin = block * block_elements;
                         return quantize_block(y + begin, x + begin,
                                               std::min(block_elements, n - begin), scale, format);
                       });
  }
  if (a.sums != nullptr) bias_backward<A>(queue, {a.sums, a.x, R, C});
  if (a.y_transposed == nullptr) return;
  // Blocks of rows and columns that the first-level cache holds.
  uint8_t* const y = static_cast<uint8_t*>(a.y_transposed);
  const int64_t rows = padded_rows(R);
  const auto turn = [=](int64_t block) {
    const int64_t c0 = block * tile, width = std::min(tile, C - c0);
    float amax = 0.0f;
    for (int64_t r0 = 0; r0 < R; r0 += tile) {
      uint8_t part[tile * tile];
      const int64_t height = std::min(tile, R - r0);
      for (int64_t r = 0; r < height; ++r)
        amax = std::max(
            amax, quantize_block(part + r * tile, x + (r0 + r) * C + c0, width, scale, format));
      for (int64_t c = 0; c < width; ++c)
        for (int64_t r = 0; r < height; ++r) y[(c0 + c) * rows + r0 + r] = part[r * tile + c];
    }
    for (int64_t c = 0; c < width; ++c)
      std::fill(y + (c0 + c) * rows + R, y + (c0 + c + 1) * rows, uint8_t{0});
    return amax;
  };
  parallel_with_amax("gptbench::fp8_quantize_transposed", ceil_div(C, tile), a.amax, turn);
}

template <class A>
void fp8_transpose(Queue&, const Fp8Transpose& a) {
  const uint8_t* const x = static_cast<const uint8_t*>(a.x);
  uint8_t* const y = static_cast<uint8_t*>(a.y);
  const int64_t R = a.R, C = a.C, rows = padded_rows(R);
  parallel("gptbench::fp8_transpose", ceil_div(C, tile), [=](int64_t block) {
    const int64_t c0 = block * tile, end = std::min(C, c0 + tile);
    for (int64_t r0 = 0; r0 < R; r0 += tile)
      for (int64_t c = c0; c < end; ++c)
        for (int64_t r = r0; r < std::min(R, r0 + tile); ++r) y[c * rows + r] = x[r * C + c];
    for (int64_t c = c0; c < end; ++c) std::fill(y + c * rows + R, y + (c + 1) * rows, uint8_t{0});
  });
}

template <class A>
void fp8_update_scales(Queue& queue, const Fp8UpdateScales& a) {
  ref::fp8_update_scales<A, float>(queue, a);  // a few numbers per layer, once per step
}

GPTBENCH_FP8_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
