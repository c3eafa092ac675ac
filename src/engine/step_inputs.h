// Input of each step and micro-batch, from the host.
#pragma once

#include <cstdint>

#include "engine/batch_reader.h"
#include "engine/failure.h"
#include "engine/input_memory.h"
#include "engine/op_call.h"
#include "engine/step_constants.h"

namespace gptbench {

// Operations that bring in inputs.
inline bool is_input(OpKind kind) {
  return kind == OpKind::load_tokens || kind == OpKind::load_labels ||
         kind == OpKind::load_lengths || kind == OpKind::load_control;
}

// Page-locked memory that the inputs of replayed steps of the plan take, for two steps.
int64_t replayed_input_bytes(const Plan& plan);

class StepInputs {
 public:
  // The arguments must outlive it. Tokens that cannot be read are noted in `failure`.
  StepInputs(Resources& resources, const TokenSource& source, Failure& failure);

  // Takes page-locked memory for the inputs of two steps; false where there is too little.
  bool allocate();
  int64_t held_bytes() const { return memory_.held_bytes(); }
  // Modes other than `upload` require allocate(). What is enqueued may overwrite a set that was
  // filled ahead.
  void set_mode(InputMode mode) {
    if (mode != InputMode::replay) filled_step_ = -1;
    memory_.set_mode(mode);
  }
  // The set of page-locked memory in use.
  int set() const { return memory_.set(); }
  void use_set(int set) { memory_.use_set(set); }

  // `step` from 0, `update` of the parameters from 1; `stop` is this rank's vote to stop.
  void begin_step(int64_t step, int64_t update, bool stop);
  // From here to end_ahead() the inputs of `step`, to be replayed next, are loaded into the other
  // set, while the device works on the step before. What cannot be read is left to that step.
  void begin_ahead(int64_t step);
  void end_ahead() { ahead_of_step_ = false; }
  // The set in use holds the inputs of this step. Those that were not known ahead are renewed by
  // load_constants() and renew_vote().
  bool filled() const { return filled_step_ == constants_.step(); }
  void renew_vote() { *pinned_vote_ = vote_; }
  // The next batch begins with sequence `first`; nothing is dropped and no parameter updated.
  void begin_evaluation(int64_t first);
  // Where steps are alike to the device, what else differs between them: the corrections of AdamW
  // and the seed of dropout. To be called before the first operation of a step.
  void load_constants();

  // The operations of these names. Tokens of a task's sequences become inputs, targets and types;
  // labels are those of the sequences whose tokens were loaded last. Stale values stand for tokens
  // that cannot be read, so that no rank waits.
  void load_tokens(const OpCall& call);
  void load_labels(const OpCall& call);
  void load_lengths(const OpCall& call);
  void load_control(const OpCall& call);

  // The votes of this step are being counted: one that comes later belongs to the next step.
  void count_votes() { votes_counted_ = true; }
  // This rank has failed: it votes to stop, in the next step where the votes of this one have been
  // counted.
  void vote_to_stop();
  // Notes the failure; where it is the first, this rank votes to stop.
  void fail(Exit code, const std::string& reason) {
    if (failure_.note(code, reason)) vote_to_stop();
  }

  BatchReader& batch() { return batch_; }
  const StepConstants& constants() const { return constants_; }
  // In the device's memory; null where kernels take them by value.
  const float* corrections_in_memory() const { return in_memory(plan().buffer_index.corrections); }
  const uint64_t* dropout_seed_in_memory() const {
    return in_memory(plan().buffer_index.dropout_seed);
  }

 private:
  const Plan& plan() const { return resources_.plan; }
  void put(const OpCall& call, Slot to, const void* from, int64_t bytes) {
    memory_.put(call.queue(), call[to], from, bytes);
  }
  Address in_memory(int buffer) const;

  Resources& resources_;
  Failure& failure_;
  InputMemory memory_;
  BatchReader batch_;
  StepConstants constants_;
  bool ahead_of_step_ = false;     // between begin_ahead() and end_ahead()
  int64_t filled_step_ = -1;       // whose inputs the set in use holds; -1: of none
  double vote_ = 0.0;              // 1: stop
  bool votes_counted_ = false;     // those of the step that is being issued
  double* pinned_vote_ = nullptr;  // the same in page-locked memory
};

}  // namespace gptbench
