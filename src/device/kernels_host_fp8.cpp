#include "base/fp8.h"
#include "device/host_parallel.h"
#include "device/kernels_host.h"
#include "device/kernels_ref.h"
#include "device/simd_math.h"

namespace gptbench::host {
namespace {

// The largest magnitude as an integer: positive floats are ordered as their bits are. Infinity
// takes part, NaN does not.
inline int32_t magnitude_of(float x) {
  const int32_t bits = static_cast<int32_t>(simd::float_to_bits(x) & 0x7fffffffu);
  return bits > 0x7f800000 ? 0 : bits;
}

template <class A>
float quantize_block(uint8_t* y, const A* x, int64_t n, float scale, Fp8Format format) {
  int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const float value = simd::load(x[i]);
    const int32_t magnitude = magnitude_of(value);
    largest = magnitude > largest ? magnitude : largest;
    y[i] = fp8_encode(scale * value, format);
  }
  return simd::bits_to_float(static_cast<uint32_t>(largest));
}

constexpr int64_t tile = 64;

}  // namespace

// Maxima of blocks go through the stack, as many blocks at a time as fit there.
template <class A>
void fp8_quantize(Queue&, const Fp8Quantize& a) {
  constexpr int64_t most = 1024;
  float largest[most];
  float* const maxima = largest;
  const A* const x = static_cast<const A*>(a.x);
  const float scale = a.scale[0];
  const Fp8Format format = fp8_format(a.type);
  const int64_t R = a.R, C = a.C;
  const auto take_maxima = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) a.amax[0] = std::max(a.amax[0], largest[i]);
  };
  if (a.y != nullptr) {
    uint8_t* const y = static_cast<uint8_t*>(a.y);
    const int64_t n = R * C, blocks = ceil_div(n, block_elements);
    for (int64_t first = 0; first < blocks; first += most) {
      const int64_t count = std::min(most, blocks - first);
      parallel("gptbench::fp8_quantize", count, [=](int64_t block) {
        const int64_t begin = (first + block) * block_elements;
        maxima[block] = quantize_block(y + begin, x + begin, std::min(block_elements, n - begin),
                                       scale, format);
      });
      take_maxima(count);
    }
  }
  if (a.y_transposed == nullptr) return;
  // Blocks of rows and columns that the first-level cache holds.
  uint8_t* const y = static_cast<uint8_t*>(a.y_transposed);
  const int64_t rows = padded_rows(R), blocks = ceil_div(C, tile);
  for (int64_t first = 0; first < blocks; first += most) {
    const int64_t count = std::min(most, blocks - first);
    parallel("gptbench::fp8_quantize_transposed", count, [=](int64_t block) {
      const int64_t c0 = (first + block) * tile, width = std::min(tile, C - c0);
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
      maxima[block] = amax;
    });
    take_maxima(count);
  }
}

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

// A few numbers a layer, once a step.
void fp8_update_scales(Queue& queue, const Fp8UpdateScales& a) {
  ref::fp8_update_scales(queue, a);
}

}  // namespace gptbench::host

namespace gptbench {
GPTBENCH_HOST_KERNEL(fp8_quantize, Fp8Quantize);
}  // namespace gptbench
