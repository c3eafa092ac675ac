// Where tokens come from. A source is a function of the global sequence number, so that every
// layout of ranks trains on the same sequences in the same steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "deck/config.h"

namespace gptbench {

// Number of the first held-out sequence: no training reaches it. Synthetic sequences stay apart up
// to 2^23 positions each.
constexpr int64_t held_out_begin = int64_t{1} << 40;

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // One line for the report: "text file corpus.txt, 1,115,394 bytes, 1,089 sequences of 1,024".
  virtual std::string description() const = 0;
  // The entropy of the tokens in nats per token, below which no model's loss can stay; 0: unknown.
  virtual double entropy() const { return 0.0; }
  // tokens[0 .. T] of sequence `sequence` >= 0 (step x global batch + place in the batch): inputs
  // are the first T, targets the last T. Files start again at their beginning when they end. From
  // held_out_begin on: held-out sequences, for synthetic tokens others of the same distribution,
  // for files those that no number below yields. Throws Error(Exit::io) when a file cannot be read
  // or holds an id >= vocab_size.
  virtual void read(int64_t sequence, int32_t* tokens) const = 0;
};

// Held-out sequences: the first of the files `path`, or the last of data.path.
struct HeldOut {
  int64_t sequences = 0;  // that are evaluated; 0: none
  std::string path;
};

// How much of a Megatron-LM dataset's index is read: all of it, gigabytes of a large dataset, or
// its header and last entry, which say how long the data must be. The entries before serve no other
// purpose: where all ranks read the same files, one of them finds damage there for all.
enum class IndexCheck { whole, ends };

// T positions, ids below vocab_size (before padding). Throws Error(Exit::io) for files that are
// missing, truncated, too short or of another kind.
std::unique_ptr<TokenSource> make_token_source(const DataConfig& data, uint64_t seed, int64_t T,
                                               int64_t vocab_size, const HeldOut& held_out = {},
                                               IndexCheck index_check = IndexCheck::whole);

}  // namespace gptbench
