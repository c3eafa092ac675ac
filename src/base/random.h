// Counter-based random numbers: a value depends on (seed, stream, global element index) alone, so
// that every layout of ranks and every device draws the same weights, tokens and dropout masks.
#pragma once

#include <array>
#include <cstdint>

#include "base/host_device.h"

namespace gptbench {

// Purpose of a random number; part of the counter, so that streams never overlap. `instance` tells
// the tensors, steps or layers of one kind apart.
enum class RandomStream : uint32_t {
  weights = 1,
  tokens = 2,
  dropout = 3,
  verify = 4,
  test = 5,
  masking = 6
};

// Four words as a type for device code; the host's own is std::array. A word is selected, not
// indexed, since an array with indices of run time lies in a GPU's memory instead of registers.
struct PhiloxWords {
  uint32_t word[4];
  GPTBENCH_HOST_DEVICE uint32_t operator[](uint64_t i) const {
    return i < 2 ? (i == 0 ? word[0] : word[1]) : i == 2 ? word[2] : word[3];
  }
};

// Philox4x32-10 (Salmon et al., SC11, section 3): four 32-bit words from a 128-bit counter and a
// 64-bit key.
template <class Words = std::array<uint32_t, 4>>
GPTBENCH_HOST_DEVICE Words philox(Words counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * counter[0];
    const uint64_t p1 = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// Philox of `lanes` counters at once: on entry words[w][i] is word w of counter i, on return that
// of its random numbers. Loops over lanes with nothing inside that keeps compilers from
// vectorising.
template <int lanes>
inline void philox_lanes(uint32_t (&words)[4][lanes], uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int i = 0; i < lanes; ++i) {
      const uint64_t p0 = 0xD2511F53ull * words[0][i];
      const uint64_t p1 = 0xCD9E8D57ull * words[2][i];
      const uint32_t w1 = words[1][i], w3 = words[3][i];
      words[0][i] = static_cast<uint32_t>(p1 >> 32) ^ w1 ^ k0;
      words[1][i] = static_cast<uint32_t>(p1);
      words[2][i] = static_cast<uint32_t>(p0 >> 32) ^ w3 ^ k1;
      words[3][i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// Words 4 block .. 4 block + 3 of stream (seed, stream, instance).
GPTBENCH_HOST_DEVICE inline PhiloxWords random_words(uint64_t seed, RandomStream stream,
                                                     uint32_t instance, uint64_t block) {
  return philox<PhiloxWords>({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                               instance, static_cast<uint32_t>(stream)}},
                             seed);
}

// Word `element` of stream (seed, stream, instance): word element % 4 of Philox block element / 4.
// instance < 2^32, element < 2^62.
GPTBENCH_HOST_DEVICE inline uint32_t random_word(uint64_t seed, RandomStream stream,
                                                 uint32_t instance, uint64_t element) {
  return random_words(seed, stream, instance, element / 4)[element % 4];
}

// Uniform on (0, 1): the mid-point of one of 2^23 equal intervals. With 2^24 the mid-points of the
// upper half would not be floats, and the last would round to 1.
GPTBENCH_HOST_DEVICE inline float uniform_of(uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}

// out[i] = std * n(first + i), i = 0 .. count - 1, where n(e) are standard normal: elements 2k and
// 2k + 1 come from the words of the same numbers by Box and Muller (1958). Uses only IEEE
// additions, multiplications, divisions and square roots of float without contraction, so that the
// bits are the same on every machine. Assigns.
void fill_normal(float* out, int64_t count, uint64_t seed, RandomStream stream, uint32_t instance,
                 uint64_t first, float std);

}  // namespace gptbench
