#include "data/markov_chain.h"

#include <algorithm>
#include <cmath>

namespace gptbench {
namespace {

constexpr uint32_t successor_words = 3u << 30;  // words below are 3/4 of all

int octave_of(int64_t id) {
  int octave = 0;
  while (id + 1 >= int64_t{2} << octave) ++octave;
  return octave;
}

}  // namespace

MarkovChain::MarkovChain(int64_t vocab_size)
    : log2_ids_(std::log2(static_cast<double>(vocab_size + 1))) {
  for (int64_t begin = 0; begin < vocab_size; begin = 2 * begin + 1) {
    const int64_t size = std::min(begin + 1, vocab_size - begin);
    const double share =
        std::log2(static_cast<double>(begin + size + 1) / static_cast<double>(begin + 1)) /
        log2_ids_;
    const int64_t step = (size * 618 / 1000) | 1;  // odd: one round trip of a whole octave
    octaves_.push_back({begin, size, step, share / static_cast<double>(size)});
  }
}

int32_t MarkovChain::first(uint32_t octave_word, uint32_t place_word) const {
  const auto number = static_cast<size_t>(octave_word * 0x1p-32 * log2_ids_);
  const Octave& octave = octaves_[std::min(number, octaves_.size() - 1)];
  const auto place = static_cast<int64_t>(place_word * static_cast<uint64_t>(octave.size) >> 32);
  return static_cast<int32_t>(octave.begin + place);
}

int32_t MarkovChain::next(int32_t id, uint32_t octave_word, uint32_t place_word) const {
  if (octave_word >= successor_words)
    return first((octave_word - successor_words) << 2, place_word);
  const Octave& octave = octaves_[static_cast<size_t>(octave_of(id))];
  const int64_t place = id - octave.begin;
  return static_cast<int32_t>(octave.begin + (place + octave.step) % octave.size);
}

double MarkovChain::entropy_alone() const {
  double sum = 0.0;
  for (const Octave& octave : octaves_)
    sum -= static_cast<double>(octave.size) * octave.frequency * std::log(octave.frequency);
  return sum;
}

// Behind an id of frequency f comes its successor with probability p = 3/4 + f / 4, any other id of
// frequency g with g / 4.
double MarkovChain::entropy() const {
  const double others = (entropy_alone() + std::log(4.0)) / 4.0;
  double sum = 0.0;
  for (const Octave& octave : octaves_) {
    const double f = octave.frequency, p = 0.75 + f / 4.0;
    sum += static_cast<double>(octave.size) * f *
           (-p * std::log(p) + others + f / 4.0 * std::log(f / 4.0));
  }
  return sum;
}

}  // namespace gptbench
