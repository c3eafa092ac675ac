// What the host brings in for each micro-batch and step: tokens, labels, lengths, votes.
#include "base/error.h"
#include "engine/engine.h"
#include "engine/handlers.h"
#include "plan/lengths.h"

namespace gptbench {

void handle::load_tokens(const OpCall& call) {
  Engine& e = call.engine();
  const int64_t T = e.plan_.T_local();
  const Positions held = e.positions();
  const int64_t B = call.task.sequences.count;
  const int64_t first =
      e.step_ * e.plan_.config.batch.global_batch_size + call.task.sequences.first;
  try {
    for (int64_t b = 0; b < B; ++b) {
      const SentencePair* pair = e.pairs_ != nullptr ? &e.pairs_->read(first + b) : nullptr;
      if (pair == nullptr) e.source_.read(first + b, e.sequence_.data());
      const int32_t* inputs = pair != nullptr ? pair->inputs.data() : e.sequence_.data();
      const int32_t* targets = pair != nullptr ? pair->targets.data() : e.sequence_.data() + 1;
      for (int64_t t = 0; t < T; ++t) {
        const int64_t at = position_of(held, t);
        const size_t row = static_cast<size_t>(b * T + t);
        e.inputs_[row] = inputs[at];
        e.targets_[row] = targets[at];
        if (pair != nullptr) e.types_[row] = pair->types[static_cast<size_t>(at)];
      }
      if (pair != nullptr) e.labels_[static_cast<size_t>(b)] = pair->label;
    }
  } catch (const Error& error) {
    e.fail(Exit::io, error.what());
  }
  const int64_t bytes = B * T * size_of(DType::i32);
  e.give(call.queue(), call.write(Slot::tokens), e.inputs_.data(), bytes);
  e.give(call.queue(), call.write(Slot::targets), e.targets_.data(), bytes);
  if (e.pairs_ != nullptr) e.give(call.queue(), call.write(Slot::types), e.types_.data(), bytes);
}

// Those of the micro-batch whose tokens were loaded last, as far as this rank works on them.
void handle::load_labels(const OpCall& call) {
  Engine& e = call.engine();
  e.give(call.queue(), call.write(Slot::labels),
         e.labels_.data() + first_sequence_of(call.op, call.held_rows, call.op.part),
         call.rows * size_of(DType::i32));
}

void handle::load_lengths(const OpCall& call) {
  Engine& e = call.engine();
  const int64_t first =
      e.step_ * e.plan_.config.batch.global_batch_size + call.task.sequences.first;
  for (int64_t b = 0; b < call.task.sequences.count; ++b)
    e.lengths_[static_cast<size_t>(b)] =
        static_cast<int32_t>(length_of_sequence(e.plan_.config, first + b));
  e.give(call.queue(), call.write(Slot::lengths), e.lengths_.data(),
         call.task.sequences.count * size_of(DType::i32));
}

void handle::load_control(const OpCall& call) {
  Engine& e = call.engine();
  if (e.replay_ != Engine::Replay::never)
    e.given_vote_ = reinterpret_cast<double*>(e.given_ + e.given_at_);
  e.give(call.queue(), call.write(Slot::stop_votes), &e.vote_to_stop_, sizeof e.vote_to_stop_);
  const double weight = 1.0 / static_cast<double>(e.num_targets_);
  if (call.op.has(Slot::row_weight))
    e.give(call.queue(), call.write(Slot::row_weight), &weight, sizeof weight);
}

}  // namespace gptbench
