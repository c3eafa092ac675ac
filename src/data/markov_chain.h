// Synthetic text that can be learned: a Markov chain over the ids of a vocabulary, whose entropy is
// known, so that a loss can be compared with the least that is possible.
#pragma once

#include <cstdint>
#include <vector>

namespace gptbench {

// Ids are grouped by octaves: octave j holds ids 2^j - 1 to 2^(j+1) - 2, the last one up to V - 1.
// A drawn id is of octave j with probability log2((its end + 1) / (its begin + 1)) / log2(V + 1),
// and any id inside is as likely: frequencies follow Zipf's law, 1 / (id + 1), by steps. Behind an
// id comes with probability 3/4 its successor, the id that lies some way on around the same octave,
// else an id that is drawn. So ids have the same frequencies at every place of a sequence.
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
