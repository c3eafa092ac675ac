#include "base/random.h"

#include <algorithm>

#include "base/normal.h"

// Compiled with -ffp-contract=off (CMakeLists.txt): contraction of a * b + c into one rounding
// would make the bits depend on the compiler.

namespace gptbench {
namespace {

// Blocks are generated this many at a time so that each stage is a loop that vectorises.
constexpr int chunk_blocks = 64;

}  // namespace

void fill_normal(float* out, int64_t count, uint64_t seed, RandomStream stream, uint32_t instance,
                 uint64_t first, float std) {
  uint32_t words[4][chunk_blocks];
  float numbers[4 * chunk_blocks];
  const uint64_t end = first + static_cast<uint64_t>(count);
  for (uint64_t block0 = first / 4; 4 * block0 < end; block0 += chunk_blocks) {
#pragma omp simd
    for (int i = 0; i < chunk_blocks; ++i) {
      const uint64_t block = block0 + static_cast<uint64_t>(i);
      words[0][i] = static_cast<uint32_t>(block);
      words[1][i] = static_cast<uint32_t>(block >> 32);
      words[2][i] = instance;
      words[3][i] = static_cast<uint32_t>(stream);
    }
    philox_lanes(words, seed);
    for (int half = 0; half < 2; ++half) {
      const uint32_t* const radius_word = words[2 * half];
      const uint32_t* const angle_word = words[2 * half + 1];
      float* const to = numbers + 2 * half;
#pragma omp simd
      for (int i = 0; i < chunk_blocks; ++i) {
        const normal::Pair pair = normal::pair_of(radius_word[i], angle_word[i], std);
        to[4 * i] = pair.first;
        to[4 * i + 1] = pair.second;
      }
    }
    const uint64_t begin = std::max(first, 4 * block0);
    const uint64_t stop = std::min(end, 4 * (block0 + chunk_blocks));
    std::copy(numbers + (begin - 4 * block0), numbers + (stop - 4 * block0), out + (begin - first));
  }
}

}  // namespace gptbench
