// The sequences of a step, from the stream of tokens to the arrays of a micro-batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/sentence_pairs.h"
#include "data/token_source.h"
#include "device/arguments_types.h"
#include "plan/plan.h"

namespace gptbench {

// The arrays of a micro-batch in host memory; B sequences, T_local positions of each on this rank.
struct MicroBatch {
  std::vector<int32_t> inputs, targets;  // [B, T_local]
  std::vector<int32_t> types, labels;    // [B, T_local], [B]; where the family has them
  std::vector<int32_t> lengths;          // [B]; where sequences are padded
};

class BatchReader {
 public:
  // Both must outlive it.
  BatchReader(const Plan& plan, const TokenSource& source);

  // Number in the stream of tokens of the first sequence of `step`; global.
  int64_t sequences_before(int64_t step) const {
    return step_zero_ + step * plan_.config.batch.global_batch_size;
  }
  // From now on `step` begins with sequence `sequences`.
  void set_position(int64_t step, int64_t sequences) {
    step_zero_ += sequences - sequences_before(step);
  }

  // The batch that is read from here on begins with sequence `first` of the stream. Counts its
  // targets, unless it has begun already.
  void begin_batch(int64_t first);
  int64_t num_targets() const { return num_targets_; }  // rows of the global batch that have one

  // Reads sequences of the batch: `held`, the positions on this rank, become inputs, targets and
  // types; labels are read as well. Throws what the source throws; the arrays then hold stale
  // values.
  void read(SequenceRange sequences, const Positions& held);
  void read_lengths(SequenceRange sequences);
  const MicroBatch& micro_batch() const { return micro_batch_; }

  // Draws the tokens of a later step, for read() to find. What cannot be read is left to it.
  void draw_ahead(int64_t step);

 private:
  // Sequence `sequence` of the stream and its successor, [T + 1].
  const int32_t* read_sequence(int64_t sequence);

  const Plan& plan_;
  const TokenSource& source_;
  std::unique_ptr<SentencePairs> pairs_;  // what sequences become; null: next tokens
  std::vector<int32_t> sequence_;         // [T + 1] one sequence and its successor
  std::vector<int32_t> ahead_;            // [ahead_sequences_.count, T + 1] sequences drawn before
  SequenceRange ahead_sequences_;         // of the stream
  MicroBatch micro_batch_;
  int64_t first_ = -1;     // sequence of the batch; -1: none has begun
  int64_t step_zero_ = 0;  // sequence at which step 0 would begin; other than 0 where the size of
                           // the batch has changed
  int64_t num_targets_ = 1;
};

}  // namespace gptbench
