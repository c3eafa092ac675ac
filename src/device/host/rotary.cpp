#include <cmath>

#include "device/host/kernels.h"
#include "device/host/parallel.h"
#include "device/host/simd_math.h"

namespace gptbench::host {
namespace {

constexpr double two_over_pi = 0.63661977236758134308;
// Pairs of elements whose sines and cosines are kept at a time.
constexpr int64_t pair_chunk = 128;

// Quarter turns per position, for pairs d0, d0 + 1, ...
struct Frequencies {
  double quarters[pair_chunk];
};

// Pairs [d0, d0 + count) of every head of one row at `position`. Sines and cosines are computed
// once for all heads.
template <class A>
void turn_row(A* row, double position, const Frequencies& frequencies, int64_t heads, int64_t D,
              int64_t d0, int64_t count) {
  float sine[pair_chunk], cosine[pair_chunk];
#pragma omp simd
  for (int64_t d = 0; d < count; ++d) {
    const simd::SinCos turn = simd::sincos_quarters(position * frequencies.quarters[d]);
    sine[d] = turn.sin;
    cosine[d] = turn.cos;
  }
  for (int64_t h = 0; h < heads; ++h) {
    A* const first = row + h * D + d0;
    A* const second = first + D / 2;
#pragma omp simd
    for (int64_t d = 0; d < count; ++d) {
      const float x0 = simd::load(first[d]);
      const float x1 = simd::load(second[d]);
      simd::store(first[d], x0 * cosine[d] - x1 * sine[d]);
      simd::store(second[d], x1 * cosine[d] + x0 * sine[d]);
    }
  }
}

}  // namespace

template <class A>
void rotary(Queue&, const Rotary& a) {
  A* const x = static_cast<A*>(a.x);
  const int64_t heads = a.heads, D = a.D, row = a.row, T_local = a.T_local;
  const Positions positions = a.positions;
  const double direction = a.inverse ? -1.0 : 1.0;
  Frequencies frequencies;
  for (int64_t d0 = 0; d0 < D / 2; d0 += pair_chunk) {
    const int64_t count = std::min(pair_chunk, D / 2 - d0);
    for (int64_t d = 0; d < count; ++d) {
      const double exponent = -2.0 * static_cast<double>(d0 + d) / static_cast<double>(D);
      frequencies.quarters[d] = direction * two_over_pi * std::pow(a.theta, exponent);
    }
    const Frequencies* const shared = &frequencies;
    parallel("gptbench::rotary", a.R, [=](int64_t r) {
      const double position = static_cast<double>(position_of(positions, r % T_local));
      turn_row(x + r * row, position, *shared, heads, D, d0, count);
    });
  }
}

GPTBENCH_ROTARY_KERNELS(GPTBENCH_HOST_KERNEL)

}  // namespace gptbench::host
