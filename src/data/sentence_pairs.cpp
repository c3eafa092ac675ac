#include "data/sentence_pairs.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "plan/lengths.h"

namespace gptbench {
namespace {

// Number below `bound`, drawn from a word; bound < 2^32. The probabilities of two numbers differ by
// at most bound / 2^32 of themselves, 6e-5 for a vocabulary of 2^18, which no training can tell.
int64_t below(uint32_t word, int64_t bound) {
  return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(bound)) >> 32);
}

constexpr int special_tokens = 3;

}  // namespace

SentencePairs::SentencePairs(const TokenSource& source, uint64_t seed, int64_t T,
                             int64_t vocab_size, double short_seq_prob)
    : source_(source),
      seed_(seed),
      T_(T),
      vocab_size_(vocab_size),
      short_seq_prob_(short_seq_prob),
      stream_(static_cast<size_t>(T + 1)),
      places_(static_cast<size_t>(T)) {
  GPTBENCH_CHECK(T >= 8 && vocab_size >= 8, "room for two segments and the special tokens");
  for (std::vector<int32_t>* each : {&pair_.inputs, &pair_.targets, &pair_.types})
    each->resize(static_cast<size_t>(T));
}

// Numbers of a sequence: 0 the cut, 1 the label, 2 the other sequence; then T each of places, of
// what becomes of them and of random tokens.
uint32_t SentencePairs::word(int64_t sequence, int64_t number) const {
  const uint64_t numbers = 3 + 3 * static_cast<uint64_t>(T_);
  return random_word(seed_, RandomStream::masking, 0,
                     static_cast<uint64_t>(sequence) * numbers + static_cast<uint64_t>(number));
}

const SentencePair& SentencePairs::read(int64_t sequence) {
  const int32_t sep = static_cast<int32_t>(vocab_size_ - 3);
  const int32_t cls = sep + 1, mask = sep + 2;
  const int64_t length = length_of_sequence(short_seq_prob_, seed_, T_, sequence);
  const int64_t both = length - special_tokens;
  const int64_t a = 1 + below(word(sequence, 0), both - 1);  // 1 .. both - 1 tokens
  pair_.label = static_cast<int32_t>(word(sequence, 1) >> 31);

  std::vector<int32_t>& inputs = pair_.inputs;
  source_.read(sequence, stream_.data());
  inputs[0] = cls;
  std::copy_n(stream_.begin(), a, inputs.begin() + 1);
  inputs[static_cast<size_t>(a + 1)] = sep;
  if (pair_.label == 1)
    source_.read(sequence + 1 + below(word(sequence, 2), 65536), stream_.data());
  std::copy_n(stream_.begin() + a, both - a, inputs.begin() + a + 2);
  inputs[static_cast<size_t>(length - 1)] = sep;
  std::fill(inputs.begin() + length, inputs.end(), padding_token);
  std::fill(pair_.types.begin(), pair_.types.end(), 0);
  std::fill(pair_.types.begin() + a + 2, pair_.types.begin() + length, 1);

  std::fill(pair_.targets.begin(), pair_.targets.end(), -1);
  int64_t candidates = 0;
  for (int64_t t = 1; t < length - 1; ++t)
    if (t != a + 1) places_[static_cast<size_t>(candidates++)] = static_cast<int32_t>(t);
  for (int64_t i = 0; i < masked_tokens_of(length); ++i) {
    const int64_t drawn = i + below(word(sequence, 3 + i), candidates - i);
    std::swap(places_[static_cast<size_t>(i)], places_[static_cast<size_t>(drawn)]);
    const size_t at = static_cast<size_t>(places_[static_cast<size_t>(i)]);
    pair_.targets[at] = inputs[at];
    const int64_t tenth = below(word(sequence, 3 + T_ + i), 10);
    if (tenth < 8)
      inputs[at] = mask;
    else if (tenth == 8)
      inputs[at] =
          static_cast<int32_t>(below(word(sequence, 3 + 2 * T_ + i), vocab_size_ - special_tokens));
  }
  return pair_;
}

}  // namespace gptbench
