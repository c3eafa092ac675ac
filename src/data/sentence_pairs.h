// Training examples of BERT (Devlin et al., arXiv:1810.04805), made of any stream of tokens: two
// segments side by side, some tokens masked.
#pragma once

#include <cstdint>
#include <vector>

#include "data/token_source.h"

namespace gptbench {

// A sequence of T positions: [CLS], segment A, [SEP], segment B, [SEP], and behind them padding.
struct SentencePair {
  std::vector<int32_t> inputs;   // [T]
  std::vector<int32_t> targets;  // [T]; the token to be found where it is masked, else -1
  std::vector<int32_t> types;    // [T]; 0 up to the first [SEP], 1 behind it, 0 of padding
  int32_t label = 0;             // 0: B follows A, 1: B is from elsewhere
};

// The last three ids of the vocabulary are [SEP], [CLS] and [MASK]: streams of any tokenizer keep
// their ids, and one that uses these three meets them as ordinary tokens as well.
//
// Sequence s is a function of (seed, s) and the stream alone, so that every layout of ranks sees
// the same. Of length L (plan/lengths.h), A and B share the L - 3 other positions, the cut drawn
// evenly; in half of the sequences B goes on where A ends, else it is cut from a sequence drawn
// from the 65536 behind. Of the tokens that are not special, masked_tokens_of(L) (deck/family.h)
// are targets, drawn without replacement: 80% of them become [MASK], 10% a random token, 10% stay
// as they are.
class SentencePairs {
 public:
  // `source` must outlive it and yield ids below vocab_size. T >= 8, vocab_size >= 8.
  SentencePairs(const TokenSource& source, uint64_t seed, int64_t T, int64_t vocab_size,
                double short_seq_prob = 0.0);

  // The next read overwrites what is returned. Throws what the source throws.
  const SentencePair& read(int64_t sequence);

 private:
  uint32_t word(int64_t sequence, int64_t number) const;

  const TokenSource& source_;
  uint64_t seed_;
  int64_t T_, vocab_size_;
  double short_seq_prob_;
  SentencePair pair_;
  std::vector<int32_t> stream_;  // [T + 1]
  std::vector<int32_t> places_;  // positions that may be masked, in the order of the draw
};

}  // namespace gptbench
