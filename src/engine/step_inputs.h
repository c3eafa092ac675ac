// What the host brings in for each step and micro-batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/sentence_pairs.h"
#include "data/token_source.h"
#include "engine/failure.h"
#include "engine/input_memory.h"
#include "engine/learning_rate.h"
#include "engine/op_call.h"

namespace gptbench {

// Operations that bring in inputs.
inline bool is_input(OpKind kind) {
  return kind == OpKind::load_tokens || kind == OpKind::load_labels ||
         kind == OpKind::load_lengths || kind == OpKind::load_control;
}

class StepInputs {
 public:
  // The arguments must outlive it. Tokens that cannot be read are noted in `failure`.
  StepInputs(Resources& resources, const TokenSource& source, Failure& failure);

  // Takes page-locked memory for the inputs of two steps; false where there is too little.
  bool allocate();
  // Modes other than `upload` require allocate(). What is enqueued may overwrite a set that was
  // filled ahead.
  void set_mode(InputMode mode) {
    if (mode != InputMode::replay) filled_step_ = -1;
    memory_.set_mode(mode);
  }
  // The set of page-locked memory in use.
  int set() const { return memory_.set(); }
  void use_set(int set) { memory_.use_set(set); }

  // Number in the stream of tokens of the first sequence of `step`; global.
  int64_t sequences_before(int64_t step) const {
    return step_zero_ + step * plan().config.batch.global_batch_size;
  }
  // From now on `step` begins with sequence `sequences`.
  void set_position(int64_t step, int64_t sequences) {
    step_zero_ += sequences - sequences_before(step);
    filled_step_ = -1;
  }

  // `step` from 0, `update` of the parameters from 1; `stop` is this rank's vote to stop.
  void begin_step(int64_t step, int64_t update, bool stop);
  // From here to end_ahead() the inputs of `step`, to be replayed next, are loaded into the other
  // set, while the device works on the step before. What cannot be read is left to that step.
  void begin_ahead(int64_t step);
  void end_ahead() { ahead_of_step_ = false; }
  // The set in use holds the inputs of this step. Those that were not known ahead are renewed by
  // load_scalars() and renew_vote().
  bool filled() const { return filled_step_ == step_; }
  void renew_vote() { *pinned_vote_ = vote_; }
  // The next batch begins with sequence `first`; nothing is dropped and no parameter updated.
  void begin_evaluation(int64_t first);
  // Where steps are alike to the device, what else differs between them: the corrections of AdamW
  // and the seed of dropout. To be called before the first operation of a step.
  void load_scalars();

  // The operations of these names. Tokens of sequences [first, first + count) become inputs,
  // targets and types, [B, T_local] each; labels are those of the sequences whose tokens were
  // loaded last. Stale values stand for tokens that cannot be read, so that no rank waits.
  void load_tokens(const OpCall& call);
  void load_labels(const OpCall& call);
  void load_lengths(const OpCall& call);
  void load_control(const OpCall& call);

  // Draws the tokens of a later step, for load_tokens() to find. What cannot be read is left to it.
  void draw_ahead(int64_t step);

  // This rank has failed: it votes to stop, in the next step where the votes of this one have been
  // counted.
  void vote_to_stop();

  int64_t num_targets() const { return num_targets_; }  // rows of the global batch that have one
  int64_t update() const { return update_; }
  double learning_rate() const { return learning_rate_of(plan().config, update_); }
  double dropout_rate() const { return evaluates_ ? 0.0 : plan().config.model.dropout; }
  uint64_t dropout_seed() const;
  // In the device's memory; null where kernels take them by value.
  const float* corrections_in_memory() const { return in_memory(plan().corrections); }
  const uint64_t* dropout_seed_in_memory() const { return in_memory(plan().dropout_seed); }

 private:
  const Plan& plan() const { return resources_.plan; }
  // Number of the task's first sequence in the stream of tokens; global.
  int64_t first_sequence(const OpCall& call) const {
    return batch_begin_ + call.task.sequences.first;
  }
  void put(const OpCall& call, Slot to, const void* from, int64_t bytes) {
    memory_.put(call.queue(), call[to], from, bytes);
  }
  Address in_memory(int buffer) const;
  // Sequence `sequence` and its successor, [T + 1].
  const int32_t* read_sequence(int64_t sequence);

  Resources& resources_;
  const TokenSource& source_;
  Failure& failure_;
  InputMemory memory_;
  std::unique_ptr<SentencePairs> pairs_;  // what sequences become; null: next tokens
  std::vector<int32_t> sequence_;         // [T + 1] one sequence and its successor
  std::vector<int32_t> ahead_;            // [ahead_count_, T + 1] sequences drawn before
  int64_t ahead_first_ = 0, ahead_count_ = 0;
  bool ahead_of_step_ = false;             // between begin_ahead() and end_ahead()
  int64_t filled_step_ = -1;               // whose inputs the set in use holds; -1: of none
  std::vector<int32_t> inputs_, targets_;  // [B, T_local]
  std::vector<int32_t> types_, labels_;    // [B, T_local], [B]; where the family has them
  std::vector<int32_t> lengths_;           // [B]; where sequences are padded
  int64_t step_ = 0, update_ = 1;
  int64_t batch_begin_ = 0;  // first sequence of the batch
  bool evaluates_ = false;
  int64_t step_zero_ = 0;  // sequence at which step 0 would begin; other than 0 where the size of
                           // the batch has changed
  int64_t num_targets_ = 1;
  double vote_ = 0.0;              // 1: stop
  double* pinned_vote_ = nullptr;  // the same in page-locked memory
};

}  // namespace gptbench
