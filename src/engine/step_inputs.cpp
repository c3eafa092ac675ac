#include "engine/step_inputs.h"

#include <algorithm>
#include <cmath>

#include "plan/lengths.h"
#include "plan/tasks.h"

namespace gptbench {

StepInputs::StepInputs(Resources& resources, const TokenSource& source, Failure& failure)
    : resources_(resources),
      source_(source),
      failure_(failure),
      memory_(resources.device),
      sequence_(static_cast<size_t>(plan().shape.T + 1)),
      inputs_(static_cast<size_t>(plan().micro_batch_rows)),
      targets_(inputs_.size()) {
  const size_t sequences = inputs_.size() / static_cast<size_t>(plan().T_local());
  if (plan().shape.family.head == HeadKind::masked) {
    pairs_ = std::make_unique<SentencePairs>(source, static_cast<uint64_t>(plan().config.run.seed),
                                             plan().shape.T, plan().shape.V_valid,
                                             plan().config.data.short_seq_prob);
    types_.resize(inputs_.size());
    labels_.resize(sequences);
  }
  if (plan().lengths >= 0) lengths_.resize(sequences);
}

bool StepInputs::allocate() {
  int64_t bytes = 2 * InputMemory::reserved_bytes(sizeof(double));  // load_scalars
  for_each_operation(plan(), [&](int32_t i, int64_t rows, int64_t times) {
    if (!is_input(plan().ops[static_cast<size_t>(i)].kind)) return;
    constexpr int64_t max_arrays = 3;
    bytes += max_arrays * times *
             InputMemory::reserved_bytes(rows * size_of(DType::i32) + sizeof(double));
  });
  return memory_.allocate(bytes);
}

void StepInputs::begin_step(int64_t step, int64_t update, bool stop) {
  step_ = step;
  update_ = update;
  evaluates_ = false;
  batch_begin_ = sequences_before(step);
  num_targets_ = targets_of_batch(plan(), batch_begin_);
  vote_ = stop ? 1.0 : 0.0;
}

// The update and the vote are not known yet.
void StepInputs::begin_ahead(int64_t step) {
  begin_step(step, update_, false);
  set_mode(InputMode::replay);
  memory_.use_set((memory_.set() + 1) % InputMemory::num_sets);
  ahead_of_step_ = true;
  filled_step_ = step;
}

void StepInputs::begin_evaluation(int64_t first) {
  evaluates_ = true;
  batch_begin_ = first;
  num_targets_ = targets_of_batch(plan(), first);
}

void StepInputs::load_scalars() {
  memory_.begin_step();
  if (memory_.mode() == InputMode::upload) return;
  Queue& queue = resources_.queues[QueueId::compute];
  const OptimizerConfig& o = plan().config.optimizer;
  const double t = static_cast<double>(update_);
  const float corrections[2] = {static_cast<float>(learning_rate() / (1.0 - std::pow(o.beta1, t))),
                                static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(o.beta2, t)))};
  memory_.put(queue, resources_.arena.address({plan().corrections}, 0), corrections,
              sizeof corrections);
  if (plan().dropout_seed < 0) return;
  const uint64_t seed = dropout_seed();
  memory_.put(queue, resources_.arena.address({plan().dropout_seed}, 0), &seed, sizeof seed);
}

void StepInputs::load_tokens(const OpCall& call) {
  const int64_t T = plan().T_local();
  const int64_t B = call.task.sequences.count;
  const Positions held = call.positions();
  const int64_t split = std::min(held.split, T);
  try {
    for (int64_t b = 0; b < B; ++b) {
      const auto hold = [&](const int32_t* sequence, std::vector<int32_t>& rows) {
        int32_t* const to = rows.data() + b * T;
        std::copy_n(sequence + held.begin[0], split, to);
        std::copy_n(sequence + held.begin[1], T - split, to + split);
      };
      const int64_t sequence = first_sequence(call) + b;
      if (pairs_ == nullptr) {
        const int32_t* const tokens = read_sequence(sequence);
        hold(tokens, inputs_);
        hold(tokens + 1, targets_);
        continue;
      }
      const SentencePair& pair = pairs_->read(sequence);
      hold(pair.inputs.data(), inputs_);
      hold(pair.targets.data(), targets_);
      hold(pair.types.data(), types_);
      labels_[static_cast<size_t>(b)] = pair.label;
    }
  } catch (const Error& error) {
    if (ahead_of_step_)
      filled_step_ = -1;
    else if (failure_.note(Exit::io, error.what()))
      vote_to_stop();
  }
  const int64_t bytes = B * T * size_of(DType::i32);
  put(call, Slot::tokens, inputs_.data(), bytes);
  put(call, Slot::targets, targets_.data(), bytes);
  if (pairs_ != nullptr) put(call, Slot::types, types_.data(), bytes);
}

const int32_t* StepInputs::read_sequence(int64_t sequence) {
  const int64_t ahead = sequence - ahead_first_;
  if (ahead >= 0 && ahead < ahead_count_)
    return ahead_.data() + ahead * static_cast<int64_t>(sequence_.size());
  source_.read(sequence, sequence_.data());
  return sequence_.data();
}

void StepInputs::draw_ahead(int64_t step) {
  const bool loads = plan().tokens >= 0 && pairs_ == nullptr;
  const SequenceRange mine =
      sequences_of(plan().config.batch.global_batch_size, plan().grid.data, plan().at.data);
  ahead_first_ = sequences_before(step) + mine.first;
  ahead_count_ = 0;
  if (!loads) return;
  ahead_.resize(static_cast<size_t>(mine.count) * sequence_.size());
  try {
    for (; ahead_count_ < mine.count; ++ahead_count_)
      source_.read(ahead_first_ + ahead_count_,
                   ahead_.data() + ahead_count_ * static_cast<int64_t>(sequence_.size()));
  } catch (const Error&) {  // noted where the step asks for it
  }
}

// As far as this rank works on them.
void StepInputs::load_labels(const OpCall& call) {
  put(call, Slot::labels, labels_.data() + first_sequence_of(call.op, call.held_rows, call.op.part),
      call.rows * size_of(DType::i32));
}

void StepInputs::load_lengths(const OpCall& call) {
  const int64_t B = call.task.sequences.count;
  for (int64_t b = 0; b < B; ++b)
    lengths_[static_cast<size_t>(b)] =
        static_cast<int32_t>(length_of_sequence(plan().config, first_sequence(call) + b));
  put(call, Slot::lengths, lengths_.data(), B * size_of(DType::i32));
}

void StepInputs::load_control(const OpCall& call) {
  pinned_vote_ =
      static_cast<double*>(memory_.put(call.queue(), call[Slot::stop_votes], &vote_, sizeof vote_));
  const double weight = 1.0 / static_cast<double>(num_targets_);
  if (call.op.has(Slot::row_weight)) put(call, Slot::row_weight, &weight, sizeof weight);
}

void StepInputs::vote_to_stop() {
  vote_ = 1.0;
  if (pinned_vote_ != nullptr) *pinned_vote_ = vote_;  // read when the step is replayed
  if (memory_.mode() == InputMode::record || memory_.mode() == InputMode::replay) return;
  const Operand votes{plan().scalars, static_cast<int64_t>(Scalar::stop_votes)};
  resources_.put(votes, &vote_, sizeof vote_);
}

// A seed of its own for each step: an odd multiple of the step never repeats in 2^64 steps.
uint64_t StepInputs::dropout_seed() const {
  return static_cast<uint64_t>(plan().config.run.seed) +
         static_cast<uint64_t>(step_) * 0x9E3779B97F4A7C15ull;
}

Address StepInputs::in_memory(int buffer) const {
  const bool by_value = memory_.mode() == InputMode::upload;
  return {by_value ? nullptr : resources_.arena.address({buffer}, 0)};
}

}  // namespace gptbench
