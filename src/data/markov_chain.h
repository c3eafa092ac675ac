// Synthetic text that can be learned: a Markov chain over the ids of a vocabulary, whose entropy is
// known, so that a loss can be compared with the least that is possible.
#pragma once

#include <cstdint>
#include <vector>

namespace gptbench {

// Tokens of a fixed Markov chain.
//   octave     ids 2^j - 1 to 2^(j+1) - 2, the last octave up to V - 1
//   drawn id   of an octave of ids [b, e) with probability log2((e + 1) / (b + 1)) / log2(V + 1),
//              each id in it as likely: frequencies follow Zipf's law, 1 / (id + 1), by steps
//   next id    with probability 3/4 the successor, a fixed way further around the same octave; else
//              a drawn id
// So ids have the same frequencies at every place of a sequence.
class MarkovChain {
 public:
  explicit MarkovChain(int64_t vocab_size);  // V in [1, 2^31)

  // The first id of a sequence, and the one behind `id`, from two random words.
  int32_t first(uint32_t octave_word, uint32_t place_word) const;
  int32_t next(int32_t id, uint32_t octave_word, uint32_t place_word) const;

  // In nats per id: of an id alone, the loss of a model that knows only frequencies; and of an id
  // behind another, which no model can stay below.
  double entropy_alone() const;
  double entropy() const;

 private:
  struct Octave {
    int64_t begin, size, step;  // the successor of begin + i is begin + (i + step) % size
    double frequency;           // of one id
  };

  std::vector<Octave> octaves_;
  double log2_ids_;  // log2(V + 1)
};

}  // namespace gptbench
