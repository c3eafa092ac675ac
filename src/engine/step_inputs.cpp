#include "engine/step_inputs.h"

#include "plan/tasks.h"

namespace gptbench {
namespace {

// Bytes of the inputs of one step.
int64_t bytes_of_a_set(const Plan& plan) {
  int64_t bytes = 2 * InputMemory::reserved_bytes(sizeof(double));  // load_constants
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t times) {
    if (!is_input(plan.ops[static_cast<size_t>(i)].kind)) return;
    constexpr int64_t max_arrays = 3;
    bytes += max_arrays * times *
             InputMemory::reserved_bytes(rows * size_of(DType::i32) + sizeof(double));
  });
  return bytes;
}

}  // namespace

int64_t replayed_input_bytes(const Plan& plan) {
  return InputMemory::num_sets * bytes_of_a_set(plan);
}

StepInputs::StepInputs(Resources& resources, const TokenSource& source, Failure& failure)
    : resources_(resources),
      failure_(failure),
      memory_(resources.device),
      batch_(resources.plan, source),
      constants_(resources.plan.config) {}

bool StepInputs::allocate() {
  return memory_.allocate(bytes_of_a_set(plan()));
}

void StepInputs::begin_step(int64_t step, int64_t update, bool stop) {
  constants_.begin_step(step, update);
  batch_.begin_batch(batch_.sequences_before(step));
  vote_ = stop ? 1.0 : 0.0;
}

// The update and the vote are not known yet.
void StepInputs::begin_ahead(int64_t step) {
  begin_step(step, constants_.update(), false);
  set_mode(InputMode::replay);
  memory_.use_set((memory_.set() + 1) % InputMemory::num_sets);
  ahead_of_step_ = true;
  filled_step_ = step;
}

void StepInputs::begin_evaluation(int64_t first) {
  constants_.begin_evaluation();
  batch_.begin_batch(first);
}

void StepInputs::load_constants() {
  memory_.begin_step();
  if (memory_.mode() == InputMode::upload) return;
  Queue& queue = resources_.queues[QueueId::compute];
  const std::array<float, 3> corrections = constants_.corrections();
  memory_.put(queue, resources_.arena.address({plan().buffer_index.corrections}),
              corrections.data(), sizeof corrections);
  if (plan().buffer_index.dropout_seed < 0) return;
  const uint64_t seed = constants_.dropout_seed();
  memory_.put(queue, resources_.arena.address({plan().buffer_index.dropout_seed}), &seed,
              sizeof seed);
}

void StepInputs::load_tokens(const OpCall& call) {
  try {
    batch_.read(call.task.sequences, call.positions());
  } catch (const Error& error) {
    if (ahead_of_step_)
      filled_step_ = -1;
    else
      fail(Exit::io, error.what());
  }
  const MicroBatch& read = batch_.micro_batch();
  const int64_t bytes = call.held_rows * size_of(DType::i32);
  put(call, Slot::tokens, read.inputs.data(), bytes);
  put(call, Slot::targets, read.targets.data(), bytes);
  if (!read.types.empty()) put(call, Slot::types, read.types.data(), bytes);
}

// As far as this rank works on them.
void StepInputs::load_labels(const OpCall& call) {
  put(call, Slot::labels,
      batch_.micro_batch().labels.data() + first_sequence_of(call.op, call.held_rows, call.op.part),
      call.rows * size_of(DType::i32));
}

void StepInputs::load_lengths(const OpCall& call) {
  batch_.read_lengths(call.task.sequences);
  put(call, Slot::lengths, batch_.micro_batch().lengths.data(),
      call.task.sequences.count * size_of(DType::i32));
}

void StepInputs::load_control(const OpCall& call) {
  votes_counted_ = false;
  pinned_vote_ =
      static_cast<double*>(memory_.put(call.queue(), call[Slot::stop_votes], &vote_, sizeof vote_));
  const double weight = 1.0 / static_cast<double>(batch_.num_targets());
  if (call.op.has(Slot::row_weight)) put(call, Slot::row_weight, &weight, sizeof weight);
}

void StepInputs::vote_to_stop() {
  vote_ = 1.0;
  if (pinned_vote_ != nullptr) *pinned_vote_ = vote_;  // read when the step is replayed
  if (memory_.mode() == InputMode::record || memory_.mode() == InputMode::replay) return;
  if (votes_counted_) return;  // written now, it would replace the sum, on this rank alone
  resources_.put(plan().scalar(Scalar::stop_votes), &vote_, sizeof vote_);
}

Address StepInputs::in_memory(int buffer) const {
  const bool by_value = memory_.mode() == InputMode::upload;
  return {by_value ? nullptr : resources_.arena.address({buffer})};
}

}  // namespace gptbench
